"""The Cost page in-process: who pays what, its files, adjustments, prices, and what if."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from urllib.parse import parse_qsl

import polars as pl
import pytest
from tests.app.billing.conftest import past_statement
from tests.app.cost_page import DAY, HOSTILE, PRICED, cost_file
from tests.app.opened_page import plain, press, table, texts, tile

from goodput_app.access.identity import Role
from goodput_app.dashboard.data import statements as data_cost
from goodput_app.process.store import use_store
from goodput_app.settings import settings
from goodput_app.time_expressions import moment_ms
from goodput_billing.delivery import archive
from goodput_billing.render import files
from goodput_billing.statement.days import day_of
from goodput_billing.statement.settings import StatementSettings
from goodput_billing.statement.statement import statement
from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_queries import audit
from goodput_queries.scope import Scope


def test_accounts_pay_for_what_they_held_and_a_budget_is_held_against_the_forecast(priced, cost):
    app = cost(priced)

    paid = dict(table(app, "label", "allocated_cost").select("label", "total_cost").iter_rows())
    assert paid == {"nlp": 50.0, HOSTILE: 2.0, "Unallocated": paid["Unallocated"]}
    assert tile(app, "Allocated cost") == "$52.00"
    assert tile(app, "Per allocated GPU-h") == "$2.00"
    assert tile(app, "Electricity") == "not known"
    shown = texts(app)  # the day that still runs is marked and not compared
    assert "of 2026-11-20 there is evidence up to 2026-11-20 10:00:00 UTC" in shown
    assert "on the day before" not in shown

    app.session_state["budgets_rows"] = True  # the table below the chart is opened
    (row,) = table(app.run(), "budget_cost").to_dicts()
    assert (row["account"], row["month_cost"], row["budget_cost"]) == ("nlp", 50, 300)


def test_without_any_price_hours_are_shown_and_money_is_not(unpriced, cost):
    app = cost(unpriced)

    assert "No price is known" in texts(app)
    assert "price_per_gpu_h" in app.code[0].value
    assert app.code[1].value.startswith("goodput ingest rates rates.csv --db ")
    assert tile(app, "Total cost") == "no price"
    assert "$0" not in texts(app)
    assert table(app, "label", "gpu_h")["total_cost"].to_list() == ["no price"] * 3


def test_a_day_stands_beside_the_day_before(priced, cost):
    app = cost(priced, day="2026-11-20")
    (row,) = table(app, "label", "before_cost").filter(label="nlp").to_dicts()
    assert (row["total_cost"], row["before_cost"]) == (2.0, 48.0)
    assert "change_ratio" not in row  # neither day has evidence from its begin to its end


def test_whole_days_are_compared(two_weeks, cost):
    """On the 27th the idle node could not be used for half a day."""
    days = {"from": "2027-01-27T00:00:00Z", "to": "2027-01-29T00:00:00Z"}
    app, of_both = cost(two_weeks, day="2027-01-28"), cost(two_weeks, **days)

    (row,) = table(app, "label", "change_percent").filter(label="Unallocated").to_dicts()
    assert (row["total_cost"], row["before_cost"]) == (96, 48)
    assert row["change_percent"] == pytest.approx(100)
    assert "Jan 28: 0.0 % on the day before" in plain(of_both)  # accounts paid the same
    chosen = cost(two_weeks, against="week", **days)
    (row,) = table(chosen, "label", "change_percent").filter(label="nlp").to_dicts()
    assert row["change_percent"] == 0
    assert "Compared with the same hours of the week before: 2 of 2 days" in plain(chosen)
    assert "Team-caused" in plain(chosen)


def test_the_pages_behind_a_line_show_the_days_that_it_charges(priced, cost):
    app = cost(priced, line="c|nlp", day="2026-11-19")
    charged = table(app, "label", "allocated_cost").filter(label="nlp")["allocated_cost"].item()

    links = {one.proto.label: one.proto.query_string for one in app.get("page_link")}
    assert "Open its runs" in links
    asked = dict(parse_qsl(links["Open its ledger"]))
    window = {name: moment_ms(asked[name], datetime.now(UTC)) for name in ("from", "to")}
    scope = Scope(from_ms=window["from"], to_ms=window["to"], team=asked["team"], cluster="c")
    spent = priced.read(
        "select sum(cost) from marts.ledger_scoped_by_node where run_key is not null", scope=scope
    )

    assert round(spent.item(), 2) == charged


def test_line_by_line_takes_some_days_and_adds_up_to_accounts(priced, cost, monkeypatch):
    monkeypatch.setattr(data_cost, "LINES_DAYS_MOST", 1)

    assert "at most 1 days at once" in texts(cost(priced, by="run"))
    app = cost(priced, by="run", line="c|c/1", day="2026-11-19")

    held = table(app, "label", "allocated_cost").filter(pl.col("label") != "Unallocated")
    assert (set(held["label"]), held["total_cost"].sum()) == ({"1", "2"}, 50)
    (link,) = (one.proto for one in app.get("page_link") if one.proto.label == "Open the run")
    assert "run=c%2F1" in link.query_string


def test_idle_time_may_be_looked_at_otherwise_than_billed(priced, cost, configured):
    configured('[statement]\ncurrency = "EUR"\n')

    app = cost(priced, idle="proportional")

    rows = table(app, "label", "idle_share_cost")
    assert rows["idle_share_cost"].sum() == pytest.approx(0)
    assert rows.filter(label="nlp")["idle_share_cost"].item() > 0
    assert "what is billed stays as the settings say" in texts(app)
    assert tile(app, "Allocated cost") == "\N{EURO SIGN}52.00"


def test_hostile_parameters_are_text_and_an_empty_filter_can_be_cleared(priced, cost):
    app = cost(priced, **dict.fromkeys(("day", "idle", "by", "line", "team", "cluster"), HOSTILE))
    assert "](http" not in texts(app)
    assert "Clear filters" in [button.label for button in app.button]


def test_statements_that_went_out_are_listed_with_their_files(priced, cost, tmp_path, configured):
    folder, files = tmp_path / "out", ("statement-2026-11-19.html",)
    configured(f'[report]\nfolder = "{folder}"\n')
    made_at = datetime(2026, 11, 20, 7, tzinfo=UTC)
    delivered = (archive.Delivery("files", "v", made_at, 1, delivered_at=made_at),)
    of_day = {"version": "v", "total_cost": Decimal("12.30"), "files": files}
    archive.keep(folder, past_statement(DAY, deliveries=delivered, **of_day))
    (folder / files[0]).write_bytes(b"<html>it</html>")

    app = cost(priced)

    assert str(tmp_path) not in plain(app)  # a path of the server
    (row,) = table(app, "state", "sent").to_dicts()
    assert (row["state"], row["total_cost"], row["sent"]) == ("closed", 12.3, "files")
    labels = [button.proto.label for button in app.get("download_button")]
    assert "statement-2026-11-19.html" in labels
    assert data_cost.past_file("statement-2026-11-19.html") == b"<html>it</html>"


def test_the_files_of_a_day_are_those_of_the_report_and_close_nothing(priced, tmp_path):
    use_store(priced)
    how = data_cost.chosen(None)

    days = [day_of(DAY + timedelta(days=n), how.settings) for n in (0, 1)]
    looked = data_cost.statement_file(days[:1], "csv", how)
    page = data_cost.statement_file(days, "html", how).decode()

    assert "19 to 20 November 2026" in page
    assert "0 of 2 days are closed." in page
    assert priced.read("select count(*) as n from billing.statement_days").item() == 0
    made = statement(data_cost.read_only(priced), DAY, StatementSettings())
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


def test_a_month_is_one_click_and_its_files_the_next(priced, cost):
    app = cost(priced)
    app.button_group(key="cost_month").set_value("This month").run()

    assert (app.query_params["from"], app.query_params["to"]) == ("now/M", "now")
    assert "2026-11-19 to 2026-11-20" in plain(app)
    assert {"CSV", "Parquet"} <= {b.proto.label for b in app.get("download_button")}

    app.selectbox(key="statement_day").select(f"{DAY} to {DAY + timedelta(days=1)}").run()
    files = [b.proto.label for b in app.get("download_button") if "download_" in b.proto.id]
    assert files == ["Web page", "PDF", "CSV", "Parquet", "FOCUS 1.2"], "of all days shown"


@pytest.fixture(scope="module")
def closed(filled, module_store):
    """Give jobs at 2 dollars on two days; the first is closed: nlp pays 48."""
    store = module_store(copy_of=cost_file(filled, PRICED))
    assert statement(store, DAY, settings().statement, closes_now=True).is_closed
    return store


def test_a_dispute_is_written_beside_its_line_and_resolved_by_a_credit(closed, cost, as_person):
    as_person(Role.FINANCE)
    app = cost(closed, day=str(DAY), line="c|nlp")
    assert "There are no notes, disputes or credits" in texts(app)
    assert _form(app).expanded, "of the picked row"
    assert not _form(cost(closed, day=str(DAY))).expanded

    app.selectbox(key="adjust_kind").set_value("dispute")
    app.text_input(key="adjust_reason_0").set_value(HOSTILE)
    app = press(app, "Write")
    assert [said.value for said in app.success] == [f"Dispute on {DAY} written."]
    (row,) = table(app, "adjustment_id").to_dicts()
    assert (row["kind"], row["status"], row["account"]) == ("Dispute", "open", "nlp")
    assert (row["reason"], row["made_by"]) == (HOSTILE, "ada")
    beside = table(app, "label", "adjustments").select("label", "adjustments").rows()
    assert dict(beside)["nlp"] == "1 open dispute"

    app.text_input(key="resolve_amount_1").set_value("5")
    app.text_input(key="resolve_reason_1").set_value("switch failed")
    app = press(app, "Resolve")

    assert not app.exception, app.exception
    shown = table(app, "adjustment_id", "amount").select("kind", "status", "amount").rows()
    assert sorted(shown, key=str) == [
        ("Credit", "not booked yet", 5.0),
        ("Dispute", "accepted", None),
        ("Resolution", "accepted", None),
    ]
    entries = audit.entries(closed).select("who", "action", "subject", "from_address").rows()
    (resolved, written) = (entry for entry in entries if entry[1] != "sign in")
    assert written[:2] == ("ada", "write a note or dispute")
    assert written[2:] == (f"dispute: {DAY}, account nlp", "192.0.2.9")
    assert resolved[1] == "give a credit or resolve a dispute"
    assert resolved[2].endswith(f"{row['adjustment_id']} accepted, credit of 5")


def _form(app):
    return next(one.proto for one in app.expander if one.label.startswith("Write a note"))


def test_prices_are_shown_with_where_they_come_from_and_how_to_change_them(priced, cost):
    app = cost(priced, part="prices")

    (row,) = table(app, "price_per_gpu_h", "valid_from").to_dicts()
    assert (row["price_per_gpu_h"], row["note"]) == (2.0, "contract 4711")
    assert row["valid_from"] == "always"
    commands = [code.value for code in app.code if code.value.startswith("goodput ingest")]
    assert [command.split()[2] for command in commands] == ["rates", "tariffs", "budgets"]
    assert "No tariff is known" in texts(app)
    assert not app.text_area, "nobody writes prices unless the settings let them"
    assert "edit_prices = true" in texts(app)


@pytest.fixture
def may_edit(configured):
    """Let people write prices on the page."""
    configured("[ui]\nedit_prices = true\n")


def _written(app, text):
    """Write lines of the rate card on the page and read them in."""
    app.text_area(key="lines_rates").set_value(text)
    (button,) = (b for b in app.button if b.label == "Imported" and "edit_rates" in str(b.proto))
    return button.click().run()


@pytest.mark.usefixtures("may_edit")
def test_a_price_written_on_the_page_is_charged_from_its_hour_on(editable, cost):
    text = "price_per_gpu_h,valid_from\n3,2026-11-20T00:00:00Z\n"
    app = _written(cost(editable, part="prices"), text)

    assert not app.exception, app.exception
    (said,) = (one.value for one in app.success)
    assert said == "1 row of rates imported; figures follow in a few seconds."
    editable.build()
    paid = table(cost(editable), "label", "allocated_cost").filter(label="nlp")["total_cost"].item()
    assert paid == 48 + 3
    origins = table(cost(editable, part="prices"), "table_name", "origin")["origin"]
    assert origins[0].startswith("Cost page, ")


@pytest.mark.usefixtures("may_edit")
def test_a_wrong_line_changes_nothing(editable, cost):
    app = cost(editable, part="prices")
    for text, words in (
        ("price_per_gpu_h\n3\nfree\n", "Nothing was imported"),
        ("colour\nred\n", "colour"),
        ("price_per_gpu_h\n", "no line below the header"),
    ):
        app = _written(app, text)
        assert words in plain(app), text

    assert editable.read("select price_per_gpu_h from raw.rates").rows() == [(2,)]


def test_fewer_newer_gpus_save_what_the_formula_says(priced, cost):
    app = cost(
        priced, part="what-if", ask="upgrade", old_gpus="100", old_power_w="700", new_gpus="50",
        new_power_w="1000", price_per_kwh="0.12",
    )  # fmt: skip

    assert tile(app, "Energy saved a year") == "175,200 kWh"
    assert tile(app, "Electricity saved a year") == "$21,024"
    assert "20\\.00 kW x 8,760 h \\= 175,200 kWh" in texts(app)
    assert tile(app, "Payback") == "not known"
    (asked_for,) = (info.value for info in app.info if "Input needed" in info.value)
    assert "Work of a new GPU" in asked_for
    assert "New GPUs" not in asked_for


def test_a_wrong_value_in_the_link_is_reported_and_left_out(priced, cost):
    app = cost(priced, part="what-if", ask="upgrade", new_gpus="fifty", old_gpus="-1")
    assert "'fifty' is not a number" in plain(app)
    assert "is -1, expected 1 to 1000000 GPUs" in plain(app)
    assert tile(app, "Energy saved a year") == "not known"


@pytest.mark.parametrize("ask", ["halve-a-loss", "checkpoints", "power-cap"])
def test_every_question_is_there_with_what_is_known(priced, cost, ask):
    app = cost(priced, part="what-if", ask=ask)
    assert any("Input needed" in info.value for info in app.info)
    assert app.metric
