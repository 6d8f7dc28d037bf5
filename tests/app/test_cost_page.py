"""The Cost page in-process: who pays what, at what price, and what if."""

from __future__ import annotations

import contextlib
import shutil
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest

from goodput_app import data_cost
from goodput_app.reports import archive, files
from goodput_app.reports.days import day_of
from goodput_app.reports.settings import StatementSettings
from goodput_app.reports.statement import statement
from goodput_app.settings import settings
from goodput_app.state import use_store
from goodput_ingest.load import ingest
from goodput_ingest.source import ReadOptions
from goodput_queries.store import LocalStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import polars as pl
    from streamlit.testing.v1 import AppTest

HOSTILE = "<img src=x onerror=alert(1)> [x](http://evil) $x$ `a` :red[z]"
SACCT = f"""Cluster|JobID|JobIDRaw|User|Account|Partition|State|Submit|Eligible|Start|End|\
NNodes|NodeList|AllocTRES|JobName
c|1|1|ann|nlp|gpu|COMPLETED|{{day}}08:00:00|{{day}}08:00:00|{{day}}08:00:00|{{day}}14:00:00|\
1|a|gres/gpu=4|train
c|2|2|eve|{HOSTILE}|gpu|COMPLETED|{{day}}09:00:00|{{day}}15:00:00|{{day}}15:00:00|\
{{day}}16:00:00|1|a|gres/gpu=1|other
c|3|3|ann|nlp|gpu|COMPLETED|{{next}}09:00:00|{{next}}09:00:00|{{next}}09:00:00|\
{{next}}10:00:00|1|a|gres/gpu=1|later
"""
PRICED = {
    "rates": "usd_per_gpu_h,note\n2,contract 4711\n",
    "budgets": "account,usd_per_month\nnlp,300\n",
}
DAY = date(2026, 11, 19)


def _store(
    empty: Path, folder: Path, money: dict[str, str], accounting: str = ""
) -> Iterator[LocalStore]:
    path = folder / "fleet.duckdb"
    shutil.copyfile(empty, path)
    text = accounting or SACCT.format(day="2026-11-19T", next="2026-11-20T")
    (folder / "sacct.txt").write_text(text)
    with contextlib.closing(LocalStore(path)) as store:
        ingest(store, "slurm", [folder / "sacct.txt"], ReadOptions(zone=ZoneInfo("UTC")))
        for source, text in money.items():
            (folder / f"{source}.csv").write_text(text)
            ingest(store, source, [folder / f"{source}.csv"], ReadOptions())
        store.build()
        yield store


@pytest.fixture(scope="module")
def priced(empty_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStore]:
    """Give three jobs of two accounts on two days, at 2 dollars, and a budget."""
    yield from _store(empty_database, tmp_path_factory.mktemp("priced"), PRICED)


@pytest.fixture(scope="module")
def unpriced(
    empty_database: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalStore]:
    """Give the same jobs without any price."""
    yield from _store(empty_database, tmp_path_factory.mktemp("unpriced"), {})


@pytest.fixture
def cost(visit: Callable[..., AppTest]) -> Callable[..., AppTest]:
    """Give what opens the Cost page and holds it to being sound."""

    def opened(store: LocalStore, **params: str) -> AppTest:
        app = visit(store, "cost_statement", **params)
        assert not app.exception, app.exception
        assert not app.error, [error.value for error in app.error]
        return app

    return opened


def texts(app: AppTest) -> str:
    """Return all text of a page that is not in a table or chart."""
    kinds = (app.title, app.subheader, app.markdown, app.caption, app.info, app.warning)
    return "\n".join(str(element.value) for kind in kinds for element in kind)


def tile(app: AppTest, label: str) -> str:
    """Return what a tile or answer shows."""
    (found,) = (metric.value for metric in app.metric if metric.label == label)
    return str(found).replace("\\", "")


def table(app: AppTest, *columns: str) -> pl.DataFrame:
    """Return the first table that has these columns."""
    import polars as pl  # noqa: PLC0415 -- for its types alone otherwise

    found = (pl.from_pandas(frame.value) for frame in app.dataframe)
    return next(frame for frame in found if set(columns) <= set(frame.columns))


def test_accounts_pay_for_what_they_held_and_nobody_for_the_rest(
    priced: LocalStore, cost: Callable[..., AppTest]
) -> None:
    app = cost(priced)

    rows = table(app, "label", "held_usd")
    paid = dict(rows.select("label", "total_usd").iter_rows())
    assert paid == {"nlp": 50.0, HOSTILE: 2.0, "Idle, nobody's": paid["Idle, nobody's"]}
    assert tile(app, "Held at its price") == "$52.00"
    assert tile(app, "Per held GPU-hour") == "$2.00"
    assert tile(app, "Electricity") == "not known"


def test_names_of_accounts_are_shown_as_text(
    priced: LocalStore, cost: Callable[..., AppTest]
) -> None:
    app = cost(priced, line=f"c|{HOSTILE}")

    assert "](http" not in texts(app)
    assert "\\[x\\]\\(http" in texts(app)


def test_without_any_price_hours_are_shown_and_money_is_not(
    unpriced: LocalStore, cost: Callable[..., AppTest]
) -> None:
    app = cost(unpriced)

    assert "No price is known" in texts(app)
    assert "usd_per_gpu_h" in app.code[0].value
    assert app.code[1].value.startswith("goodput ingest rates rates.csv --db ")
    assert tile(app, "Cost of these days") == "no price"
    assert "$0" not in texts(app)
    assert table(app, "label", "gpu_ms")["total_usd"].to_list() == ["no price"] * 3


def test_a_day_stands_beside_the_day_before(
    priced: LocalStore, cost: Callable[..., AppTest]
) -> None:
    app = cost(priced, day="2026-11-20")

    (row,) = table(app, "label", "day_before_usd").filter(label="nlp").to_dicts()
    assert (row["total_usd"], row["day_before_usd"]) == (2.0, 48.0)
    assert "change_ratio" not in row  # neither day has evidence from its begin to its end


@pytest.fixture
def whole_days(
    empty_database: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalStore]:
    """Give a job of four GPUs from before the 18th to the 21st, joined by another on the 19th."""
    text = SACCT.splitlines()[0] + "".join(
        f"\nc|{job}|{job}|ann|nlp|gpu|COMPLETED|{begin}|{begin}|{begin}|{end}|1|{node}|"
        "gres/gpu=4|train"
        for job, node, begin, end in (
            (1, "a", "2026-11-17T20:00:00", "2026-11-21T01:00:00"),
            (2, "b", "2026-11-19T00:00:00", "2026-11-19T06:00:00"),
        )
    )
    yield from _store(empty_database, tmp_path_factory.mktemp("whole"), PRICED, text)


def test_whole_days_are_compared(whole_days: LocalStore, cost: Callable[..., AppTest]) -> None:
    app = cost(whole_days, day="2026-11-19")
    of_all = cost(whole_days)

    (row,) = table(app, "label", "change_ratio").filter(label="nlp").to_dicts()
    assert (row["total_usd"], row["day_before_usd"]) == (192 + 48, 192)
    assert row["change_ratio"] == pytest.approx(25)
    told = texts(of_all).replace("\\", "")
    assert "20 Nov: +0.0 % on the day before" in told  # idle GPUs cost the same as held ones


def test_a_day_that_still_runs_is_said_and_not_compared(
    priced: LocalStore, cost: Callable[..., AppTest]
) -> None:
    app = cost(priced)

    assert "of 2026-11-20 there is evidence up to 2026-11-20 10:00:00 UTC" in texts(app)
    assert "on the day before" not in texts(app)


@pytest.mark.parametrize(
    ("by", "labels"),
    [
        ("user", {"ann", "eve"}),
        ("run", {"1", "2", "3"}),
        ("partition", {"gpu"}),
    ],
)
def test_rows_by_another_key_add_up_to_the_accounts(
    priced: LocalStore, cost: Callable[..., AppTest], by: str, labels: set[str]
) -> None:
    rows = table(cost(priced, by=by), "label", "held_usd")

    assert set(rows["label"]) == labels | {"Idle, nobody's"}
    held = rows.filter(rows["label"] != "Idle, nobody's")
    assert held["total_usd"].sum() == 52


def test_an_account_leads_to_its_runs_and_a_run_to_its_page(
    priced: LocalStore, cost: Callable[..., AppTest]
) -> None:
    account = cost(priced, line="c|nlp")
    run = cost(priced, by="run", team="nlp", line="c|c/1")

    labels = [link.proto.label for link in account.get("page_link")]
    assert "Open its runs" in labels
    (link,) = (one.proto for one in run.get("page_link") if one.proto.label == "Open the run")
    assert "run=c%2F1" in link.query_string


def test_line_by_line_takes_some_days_at_most(
    priced: LocalStore, cost: Callable[..., AppTest], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_cost, "LINES_DAYS_MOST", 1)

    assert "at most 1 days at once" in texts(cost(priced, by="run"))
    assert "at most" not in texts(cost(priced, by="run", day="2026-11-19"))


def test_a_filter_without_charges_offers_to_clear_it(
    priced: LocalStore, cost: Callable[..., AppTest]
) -> None:
    app = cost(priced, team="nlp", day="2026-11-19", cluster="elsewhere")

    assert "Clear filters" in [button.label for button in app.button]


def test_idle_time_may_be_looked_at_otherwise_than_billed(
    priced: LocalStore, cost: Callable[..., AppTest]
) -> None:
    app = cost(priced, idle="proportional")

    rows = table(app, "label", "idle_share_usd")
    assert rows["idle_share_usd"].sum() == pytest.approx(0)
    assert rows.filter(label="nlp")["idle_share_usd"].item() > 0
    assert "what is billed stays as the settings say" in texts(app)


def test_amounts_bear_the_sites_currency(
    priced: LocalStore,
    cost: Callable[..., AppTest],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "goodput.toml").write_text('[statement]\ncurrency = "EUR"\n')
    monkeypatch.setenv("GOODPUT_CONFIG", str(tmp_path / "goodput.toml"))
    settings.cache_clear()

    app = cost(priced)

    assert tile(app, "Held at its price") == "\N{EURO SIGN}52.00"


def test_a_budget_is_held_against_the_months_forecast(
    priced: LocalStore, cost: Callable[..., AppTest]
) -> None:
    (row,) = table(cost(priced), "budget_usd").to_dicts()

    assert (row["account"], row["month_usd"], row["budget_usd"]) == ("nlp", 50, 300)


def test_the_files_of_a_day_are_those_of_the_report_and_close_nothing(
    priced: LocalStore, tmp_path: Path
) -> None:
    use_store(priced)
    how = data_cost.chosen(None)

    looked = data_cost.statement_file(day_of(DAY, how.settings), "csv", how)

    assert priced.read("select count(*) as n from raw.statement_days").item() == 0
    made = statement(data_cost.ReadOnly(priced), DAY, StatementSettings())  # type: ignore[arg-type]
    (path,) = files.write(made, tmp_path, ["csv"])
    assert path.read_bytes() == looked


def test_prices_are_shown_with_where_they_come_from_and_how_to_change_them(
    priced: LocalStore, cost: Callable[..., AppTest]
) -> None:
    app = cost(priced, part="prices")

    (row,) = table(app, "usd_per_gpu_h", "valid_from").to_dicts()
    assert (row["usd_per_gpu_h"], row["note"], row["valid_from"]) == (
        2.0,
        "contract 4711",
        "always",
    )
    commands = [code.value for code in app.code if code.value.startswith("goodput ingest")]
    assert [command.split()[2] for command in commands] == ["rates", "tariffs", "budgets"]
    assert "No tariff is known" in texts(app)


def test_fewer_newer_gpus_save_what_the_formula_says(
    priced: LocalStore, cost: Callable[..., AppTest]
) -> None:
    app = cost(
        priced, part="what-if", ask="upgrade", old_gpus="100", old_power_w="700", new_gpus="50",
        new_power_w="1000", usd_per_kwh="0.12",
    )  # fmt: skip

    assert tile(app, "Energy saved a year") == "175,200 kWh"
    assert tile(app, "Electricity saved a year") == "$21,024"
    assert "20\\.00 kW x 8,760 h \\= 175,200 kWh" in texts(app)
    assert tile(app, "Payback") == "not known"
    (asked_for,) = (info.value for info in app.info if "asked for" in info.value)
    assert "Work of a new GPU" in asked_for
    assert "New GPUs" not in asked_for


@pytest.mark.parametrize(
    ("value", "words"),
    [("fifty", "'fifty' is no number"), ("-1", "New GPUs is -1, expected 1 to 1000000 GPUs")],
)
def test_a_wrong_value_in_the_link_is_said_and_left_out(
    priced: LocalStore, cost: Callable[..., AppTest], value: str, words: str
) -> None:
    app = cost(priced, part="what-if", ask="upgrade", new_gpus=value)

    assert words in texts(app).replace("\\", "")
    assert tile(app, "Energy saved a year") == "not known"


@pytest.mark.parametrize("ask", ["halve-a-loss", "checkpoints", "power-cap", "prices"])
def test_every_question_is_there_with_what_is_known(
    priced: LocalStore, cost: Callable[..., AppTest], ask: str
) -> None:
    app = cost(priced, part="what-if", ask=ask)

    assert any("Not known, and asked for" in info.value for info in app.info)
    assert app.metric


def test_another_price_is_told_account_by_account(
    priced: LocalStore, cost: Callable[..., AppTest]
) -> None:
    app = cost(priced, part="what-if", ask="prices", new_usd_per_gpu_h="3")

    (row,) = table(app, "now_usd", "new_usd").filter(account="nlp").to_dicts()
    assert (row["now_usd"], row["new_usd"], row["difference_usd"]) == (50, 75, 25)


def test_every_idle_policy_has_the_same_sum(
    priced: LocalStore, cost: Callable[..., AppTest]
) -> None:
    rows = table(cost(priced, part="what-if", ask="idle-policy"), "none_usd", "uniform_usd")

    sums = {rows[name].sum() for name in rows.columns if name.endswith("_usd")}
    assert len({round(float(total), 2) for total in sums}) == 1


def _past(day: date, files: tuple[str, ...]) -> archive.PastStatement:
    made_at = datetime(2026, 11, 20, 7, tzinfo=UTC)
    return archive.PastStatement(
        date=day, zone="UTC", is_closed=True, corrections=0, version="v", status="Closed.",
        made_at=made_at, total_usd=Decimal("12.30"), accounts_usd=Decimal("10.00"),
        capacity_ms=7_200_000, held_ms=3_600_000, productive_ms=1_800_000, files=files,
        deliveries=(archive.Delivery("files", "v", made_at, 1, delivered_at=made_at),),
    )  # fmt: skip


@pytest.fixture
def handed_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the folder of a statement that went out, with its file."""
    folder = tmp_path / "out"
    (tmp_path / "goodput.toml").write_text(f'[report]\nfolder = "{folder}"\n')
    monkeypatch.setenv("GOODPUT_CONFIG", str(tmp_path / "goodput.toml"))
    settings.cache_clear()
    archive.keep(folder, _past(DAY, ("statement-2026-11-19.html",)))
    (folder / "statement-2026-11-19.html").write_bytes(b"<html>it</html>")
    return folder


@pytest.mark.usefixtures("handed_out")
def test_statements_that_went_out_are_listed_with_their_files(
    priced: LocalStore, cost: Callable[..., AppTest]
) -> None:
    app = cost(priced)

    (row,) = table(app, "state", "sent").to_dicts()
    assert (row["state"], row["total_usd"], row["sent"]) == ("closed", 12.3, "files")
    labels = [button.proto.label for button in app.get("download_button")]
    assert "statement-2026-11-19.html" in labels
    assert data_cost.past_file("statement-2026-11-19.html") == b"<html>it</html>"


def test_a_damaged_index_is_said_and_the_page_stays(
    priced: LocalStore, cost: Callable[..., AppTest], handed_out: Path
) -> None:
    (handed_out / archive.INDEX).write_text("nonsense\n")

    app = cost(priced)

    assert "is no entry of the index" in texts(app).replace("\\", "")
    assert tile(app, "Held at its price") == "$52.00"


@pytest.mark.parametrize(
    "param", ["day", "idle", "by", "line", "part", "ask", "of", "team", "cluster"]
)
def test_hostile_parameters_are_shown_as_text(
    priced: LocalStore, cost: Callable[..., AppTest], param: str
) -> None:
    part = {"ask": "what-if", "of": "what-if"}.get(param, "")
    app = cost(priced, **{"part": part, param: HOSTILE})

    assert "](http" not in texts(app)


@pytest.fixture
def may_edit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let people write prices on the page."""
    (tmp_path / "goodput.toml").write_text("[ui]\nedit_prices = true\n")
    monkeypatch.setenv("GOODPUT_CONFIG", str(tmp_path / "goodput.toml"))
    settings.cache_clear()


@pytest.fixture
def editable(
    empty_database: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalStore]:
    """Give jobs at 2 dollars whose prices a test may change."""
    yield from _store(empty_database, tmp_path_factory.mktemp("editable"), PRICED)


def _written(app: AppTest, text: str) -> AppTest:
    """Write lines of the rate card on the page and read them in."""
    app.text_area(key="lines_rates").set_value(text)
    (button,) = (b for b in app.button if b.label == "Read in" and "edit_rates" in str(b.proto))
    return button.click().run()


def test_a_closed_day_is_shown_as_it_was_billed(
    editable: LocalStore, cost: Callable[..., AppTest], tmp_path: Path
) -> None:
    statement(editable, DAY, StatementSettings(idle_policy="uniform"), closes_now=True)
    (tmp_path / "rates.csv").write_text("usd_per_gpu_h\n7\n")
    ingest(editable, "rates", [tmp_path / "rates.csv"], ReadOptions())
    editable.build()

    app = cost(editable, day=str(DAY))

    # at the price of that day, idle time as it was carried then
    rows = table(app, "label", "idle_share_usd")
    billed = dict(rows.select("label", "held_usd").iter_rows())
    assert (billed["nlp"], billed[HOSTILE]) == (48, 2)
    assert rows.filter(label="nlp")["idle_share_usd"].item() > 0
    assert "1 of 1 day closed" in texts(app)
    by_run = table(cost(editable, day=str(DAY), by="run"), "label", "held_usd")
    assert by_run["total_usd"].sum() == pytest.approx(rows["total_usd"].sum())


@pytest.mark.usefixtures("may_edit")
def test_a_price_written_on_the_page_is_charged_from_its_hour_on(
    editable: LocalStore, cost: Callable[..., AppTest]
) -> None:
    app = _written(
        cost(editable, part="prices"), "usd_per_gpu_h,valid_from\n3,2026-11-20T00:00:00Z\n"
    )

    assert not app.exception, app.exception
    assert [said.value for said in app.success] == [
        "1 row of rates read in; figures follow in a few seconds."
    ]
    editable.build()
    paid = table(cost(editable), "label", "held_usd").filter(label="nlp")["total_usd"].item()
    assert paid == 48 + 3
    origins = table(cost(editable, part="prices"), "table_name", "origin")["origin"]
    assert origins[0].startswith("Cost page, ")


@pytest.mark.usefixtures("may_edit")
def test_a_price_that_comes_back_holds_again(
    editable: LocalStore, cost: Callable[..., AppTest]
) -> None:
    for price in ("3", "2.5", "3"):
        _written(cost(editable, part="prices"), f"usd_per_gpu_h\n{price}\n")

    assert editable.read("select usd_per_gpu_h from raw.rates").item() == 3


@pytest.mark.usefixtures("may_edit")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("usd_per_gpu_h\n-3\n", "Nothing was read in"),
        ("usd_per_gpu_h\n3\nfree\n", "Nothing was read in"),
        ("colour\nred\n", "colour"),
        ("usd_per_gpu_h\n", "no line below the header"),
    ],
)
def test_a_wrong_line_is_named_and_changes_nothing(
    editable: LocalStore, cost: Callable[..., AppTest], text: str, words: str
) -> None:
    app = _written(cost(editable, part="prices"), text)

    assert words in texts(app).replace("\\", "")
    assert editable.read("select usd_per_gpu_h from raw.rates")["usd_per_gpu_h"].to_list() == [2]


def test_nobody_writes_prices_unless_the_settings_let_them(
    priced: LocalStore, cost: Callable[..., AppTest]
) -> None:
    app = cost(priced, part="prices")

    assert not app.text_area
    assert "edit_prices = true" in texts(app)
