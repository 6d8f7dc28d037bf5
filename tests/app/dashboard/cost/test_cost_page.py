"""The Cost page in-process: who pays what."""

from datetime import UTC, datetime
from urllib.parse import parse_qsl

import polars as pl
import pytest
from tests.app.cost_page import HOSTILE, PRICED, SACCT, cost_store
from tests.app.opened_page import plain, table, texts, tile

from goodput_app.dashboard.data import statements as data_cost
from goodput_app.time_expressions import moment_ms
from goodput_queries.scope import Scope


def test_accounts_pay_for_what_they_held_and_a_budget_is_held_against_the_forecast(priced, cost):
    app = cost(priced)

    rows = table(app, "label", "allocated_cost")
    paid = dict(rows.select("label", "total_cost").iter_rows())
    assert paid == {"nlp": 50.0, HOSTILE: 2.0, "Unallocated": paid["Unallocated"]}
    assert tile(app, "Allocated cost") == "$52.00"
    assert tile(app, "Per allocated GPU-hour") == "$2.00"
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

    (row,) = table(app, "label", "day_before_cost").filter(label="nlp").to_dicts()
    assert (row["total_cost"], row["day_before_cost"]) == (2.0, 48.0)
    assert "change_ratio" not in row  # neither day has evidence from its begin to its end


@pytest.fixture
def whole_days(empty_database, tmp_path_factory):
    """Give a job of four GPUs from before the 18th to the 21st, joined by another on the 19th."""
    text = SACCT.splitlines()[0] + "".join(
        f"\nc|{job}|{job}|ann|nlp|gpu|COMPLETED|{begin}|{begin}|{begin}|{end}|1|{node}|"
        "gres/gpu=4|train"
        for job, node, begin, end in (
            (1, "a", "2026-11-17T20:00:00", "2026-11-21T01:00:00"),
            (2, "b", "2026-11-19T00:00:00", "2026-11-19T06:00:00"),
        )
    )
    yield from cost_store(empty_database, tmp_path_factory, PRICED, text)


def test_whole_days_are_compared(whole_days, cost):
    app = cost(whole_days, day="2026-11-19")
    of_all = cost(whole_days)

    (row,) = table(app, "label", "change_percent").filter(label="nlp").to_dicts()
    assert (row["total_cost"], row["day_before_cost"]) == (192 + 48, 192)
    assert row["change_percent"] == pytest.approx(25)
    shown = plain(of_all)
    assert "20 Nov: +0.0 % on the day before" in shown  # idle GPUs cost the same as held ones


def test_the_pages_behind_a_line_show_the_days_that_it_charges(priced, cost):
    app = cost(priced, line="c|nlp", day="2026-11-19")
    (charged,) = table(app, "label", "allocated_cost").filter(pl.col("label") == "nlp")[
        "allocated_cost"
    ]

    links = {one.proto.label: one.proto.query_string for one in app.get("page_link")}
    assert "Open its runs" in links
    asked = dict(parse_qsl(links["Open its ledger"]))
    window = {name: moment_ms(asked[name], datetime.now(UTC)) for name in ("from", "to")}
    scope = Scope(from_ms=window["from"], to_ms=window["to"], team=asked["team"], cluster="c")
    spent = priced.read(
        "select sum(cost) from marts.ledger_scoped_by_node where run_key is not null", scope=scope
    )

    assert round(spent.item(), 2) == charged


def test_line_by_line_takes_some_days_at_most_and_adds_up_to_the_accounts(
    priced, cost, monkeypatch
):
    monkeypatch.setattr(data_cost, "LINES_DAYS_MOST", 1)

    assert "at most 1 days at once" in texts(cost(priced, by="run"))
    app = cost(priced, by="run", line="c|c/1", day="2026-11-19")

    held = table(app, "label", "allocated_cost").filter(pl.col("label") != "Unallocated")
    assert (set(held["label"]), held["total_cost"].sum()) == ({"1", "2"}, 50)
    (link,) = (one.proto for one in app.get("page_link") if one.proto.label == "Open the run")
    assert "run=c%2F1" in link.query_string


def test_idle_time_may_be_looked_at_otherwise_than_billed_in_the_sites_currency(
    priced, cost, configured
):
    configured('[statement]\ncurrency = "EUR"\n')

    app = cost(priced, idle="proportional")

    rows = table(app, "label", "idle_share_cost")
    assert rows["idle_share_cost"].sum() == pytest.approx(0)
    assert rows.filter(label="nlp")["idle_share_cost"].item() > 0
    assert "what is billed stays as the settings say" in texts(app)
    assert tile(app, "Allocated cost") == "\N{EURO SIGN}52.00"


def test_hostile_parameters_are_shown_as_text_and_a_filter_without_charges_can_be_cleared(
    priced, cost
):
    app = cost(priced, **dict.fromkeys(("day", "idle", "by", "line", "team", "cluster"), HOSTILE))

    assert "](http" not in texts(app)
    assert "Clear filters" in [button.label for button in app.button]
