"""The Cost page: closed days, the files of a day, what was delivered."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import polars as pl
import pytest
from tests.app.billing.conftest import past_statement
from tests.app.cost_page import DAY, HOSTILE
from tests.app.opened_page import plain, table, texts

from goodput_app.dashboard.data import statements as data_cost
from goodput_app.process.store import use_store
from goodput_billing.delivery import archive
from goodput_billing.render import files
from goodput_billing.statement.days import day_of
from goodput_billing.statement.settings import StatementSettings
from goodput_billing.statement.statement import statement
from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions


def _past(day, files):
    made_at = datetime(2026, 11, 20, 7, tzinfo=UTC)
    delivered = (archive.Delivery("files", "v", made_at, 1, delivered_at=made_at),)
    cost = Decimal("12.30")
    return past_statement(day, version="v", total_cost=cost, files=files, deliveries=delivered)


@pytest.fixture
def delivered(tmp_path, configured):
    """Give the folder of a statement that went out, with its file."""
    folder = tmp_path / "out"
    configured(f'[report]\nfolder = "{folder}"\n')
    archive.keep(folder, _past(DAY, ("statement-2026-11-19.html",)))
    (folder / "statement-2026-11-19.html").write_bytes(b"<html>it</html>")
    return folder


def test_statements_that_went_out_are_listed_with_their_files(priced, cost, delivered):
    app = cost(priced)

    assert str(delivered.parent) not in plain(app)  # a path of the server
    (row,) = table(app, "state", "sent").to_dicts()
    assert (row["state"], row["total_cost"], row["sent"]) == ("closed", 12.3, "files")
    labels = [button.proto.label for button in app.get("download_button")]
    assert "statement-2026-11-19.html" in labels
    assert data_cost.past_file("statement-2026-11-19.html") == b"<html>it</html>"


def test_the_files_of_a_day_are_those_of_the_report_and_close_nothing(priced, tmp_path):
    use_store(priced)
    how = data_cost.chosen(None)

    looked = data_cost.statement_file(day_of(DAY, how.settings), "csv", how)

    assert priced.read("select count(*) as n from billing.statement_days").item() == 0
    made = statement(data_cost.ReadOnly(priced), DAY, StatementSettings())
    (path,) = files.write(made, tmp_path, ["csv"])
    assert path.read_bytes() == looked


def test_a_closed_day_is_shown_as_it_was_billed(editable, cost, tmp_path):
    statement(editable, DAY, StatementSettings(idle_policy="uniform"), closes_now=True)
    (tmp_path / "rates.csv").write_text("price_per_gpu_h\n7\n")
    ingest(editable, "rates", [tmp_path / "rates.csv"], ReadOptions())
    editable.build()

    app = cost(editable, day=str(DAY))

    # at the price of that day, idle time as it was carried then
    rows = table(app, "label", "idle_share_cost")
    billed = dict(rows.select("label", "allocated_cost").iter_rows())
    assert (billed["nlp"], billed[HOSTILE]) == (48, 2)
    assert rows.filter(label="nlp")["idle_share_cost"].item() > 0
    assert "1 of 1 day closed" in texts(app)


def test_a_month_is_one_click_and_its_file_the_next(priced, cost):
    app = cost(priced)
    app.button_group(key="cost_month").set_value("This month").run()

    assert (app.query_params["from"], app.query_params["to"]) == ("now/M", "now")
    assert "2026-11-19 to 2026-11-20" in plain(app)
    names = [button.proto.label for button in app.get("download_button")]
    assert {"CSV", "Parquet"} <= set(names)


def test_of_a_month_every_line_is_in_one_file(priced):
    use_store(priced)
    how = data_cost.chosen(None)
    days = [day_of(DAY + timedelta(days=n), how.settings) for n in (0, 1)]
    alone = [data_cost.statement_file(day, "csv", how).splitlines() for day in days]

    (header, *lines) = data_cost.lines_file(days, "csv", how).splitlines()
    table = pl.read_parquet(data_cost.lines_file(days, "parquet", how))

    assert header == alone[0][0]
    assert lines == alone[0][1:] + alone[1][1:]
    assert table.height == len(lines)
    assert table["day"].unique().sort().to_list() == [day.date for day in days]


def test_the_files_of_all_days_shown_are_offered_with_their_days(priced, cost):
    app = cost(priced)
    app.selectbox(key="statement_day").select(f"{DAY} to {DAY + timedelta(days=1)}").run()

    labels = [b.proto.label for b in app.get("download_button") if "download_" in b.proto.id]
    assert labels == ["CSV", "Parquet", "FOCUS 1.2"]
