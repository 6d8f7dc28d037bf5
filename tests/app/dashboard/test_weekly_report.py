"""The weekly report: figures as the Overview has them, and changes over what both weeks cover."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import polars as pl
import pytest
from tests.app.opened_page import links, page_of, plain, press, sent, table
from tests.tables import each, gives

from goodput_app.time_expressions import last_week
from goodput_app.weekly import like_for_like
from goodput_app.weekly.week import moved_by_team
from goodput_app.weekly.words import Writer
from goodput_queries.scope import Scope

SECOND = {"from": "2027-01-25T00:00:00.000Z", "to": "2027-02-01T00:00:00.000Z"}
WORDS = Writer(literal=str, moment="{:%H:%M}".format)
BERLIN = ZoneInfo("Europe/Berlin")
page = page_of("two_weeks", "weekly_report")


def test_the_week_in_a_paragraph_and_tables_of_teams_and_losses(page):
    shown = plain(page)
    (said,) = (text for text in shown.splitlines() if text.startswith("**Goodput"))

    assert said == (
        "**Goodput (% of capacity): 25.0 %**, \N{MINUS SIGN}75.0 points against the same hours of "
        "the week before, like for like (direction certain). **$960.00 of $1,344.00** was wasted "
        "(480.0 GPU-h, 71.4 % of the capacity). What moved most is **Unallocated**: +$624.00. The "
        "worst incident: **3: attempts of the job failed**, 2027-01-28 12:00:00 UTC, "
        "168.0 GPU-h, $336.00. Acted on: 1 node repair, 1 back in service."
    )
    assert "| (no team) | $624.00 | +$624.00 | Unallocated |" in shown
    assert "| nlp | $336.00 | +$336.00 | Failures |" in shown
    assert ["drained"] in [of_it.get("category") for of_it in links(page).values()]
    assert links(page)["Failed without progress, 3"]["run"] == ["c/3"]
    assert "Budget of nlp: $1,344.00 of $900.00 spent, month to date (149.3 %)" in shown
    assert "gp-steps" in sent(page), "the waterfall"


def test_weeks_follow_each_other(two_weeks, visit):
    assert "from" not in links(visit(two_weeks, **SECOND))["Weekly report"], (
        "it opens the last week"
    )
    page = visit(two_weeks, "weekly_report")
    assert page.title[0].value == "Week of 25 January to 31 January 2027"
    disabled = [button.label for button in page.button if button.disabled]
    assert disabled == ["Reset", "Next week"], "all are shown; the one that goes on is not whole"

    earlier = press(page, "Previous week")

    assert earlier.title[0].value == "Week of 18 January to 24 January 2027"
    assert "no earlier week is compared" in plain(earlier)
    assert earlier.query_params["from"] == "2027-01-18T00:00:00.000Z"


@each("fleet_overview", "idle_gaps", "nodes_and_one")
def test_tables_show_changes_where_a_reader_chose_an_earlier_window(two_weeks, visit, name):
    params = {"waste_team": "nlp", "team": "nlp"} | SECOND
    app = visit(two_weeks, name, against="week", **params)

    found = table(app, "change_cost", "direction")
    assert (found["change_cost"].sum(), *found["direction"].unique()) == (336, "more")
    assert "Changes are against the same hours of the week before. Like for like" in plain(app)
    with pytest.raises(StopIteration):
        table(visit(two_weeks, name, **params), "change_cost")


@each(
    ("all_runs", "week", "Against the same hours of the week before: goodput \N{MINUS SIGN}75.0"),
    ("all_runs", "month", "There is no data of the month before to compare with"),
    ("power_and_carbon", "month", "There is no data of the month before to compare with"),
    ("fleet_overview", "none", "Nothing is compared: the time range says so"),
    ("weekly_report", "none", "no earlier week is compared"),
)
def test_a_page_says_what_it_is_compared_with(two_weeks, visit, name, against, said):
    assert said in plain(visit(two_weeks, name, against=against, **SECOND))


def test_a_week_begins_on_monday_in_the_zone_of_the_page(two_weeks, visit):
    page = visit(two_weeks, "weekly_report", tz="Europe/Berlin")
    assert "2027-01-25 00:00 - 2027-02-01 00:00 UTC+01:00" in plain(page)


def test_without_a_whole_week_it_is_the_one_that_goes_on(capture, visit):
    page = visit(capture, "weekly_report")
    assert page.title[0].value == "Week so far, 16 November to 22 November 2026"
    assert "of the capacity**, was wasted; there is no price" in plain(page)


@each({
    "summer time begins":
        (datetime(2026, 4, 1, tzinfo=BERLIN), datetime(2026, 3, 23, tzinfo=BERLIN), 167),
    "ends now": (datetime(2026, 3, 30, tzinfo=UTC), datetime(2026, 3, 23, tzinfo=UTC), 168),
    "an hour is missing":
        (datetime(2026, 3, 29, 23, tzinfo=UTC), datetime(2026, 3, 16, tzinfo=UTC), 168),
})  # fmt: skip
def test_the_last_week_ends_on_a_monday_by_a_moment(until, start, hours):
    begin, end = last_week(until, datetime(2020, 1, 1, tzinfo=UTC))
    assert begin == start
    assert (end.timestamp() - begin.timestamp()) / 3600 == hours


def test_changes_of_teams_add_up_to_that_of_the_waste():
    now, then = (
        pl.DataFrame({"team": ["a", "a", None], "label": ["x", "y", "x"], "cost": costs})
        for costs in ([1.0, 2.0, 3.0], [5.0, 2.0, None])
    )

    found = moved_by_team(now, then, is_priced=True)

    assert found.rows() == [("a", "x", -4.0, False), (None, "x", 3.0, True)]


def test_an_objective_and_a_budget_are_a_line_each():
    objective = {"name": "fleet", "attained_ratio": 0.5, "target_ratio": 0.6,
                 "budget_spent_ratio": 1.25, "is_burning": True,
                 "unsettled_ms": 10, "base_ms": 40}  # fmt: skip
    budget = {"account": "nlp", "cluster": None, "month_cost": 10.0, "budget_cost": 40.0,
              "spent_ratio": 0.25, "forecast_cost": None}  # fmt: skip
    none = {**budget, "account": "cv", "budget_cost": None, "spent_ratio": None}
    of_cluster = {**budget, "account": "cv", "cluster": "c", "forecast_cost": 50.0}
    budgets = pl.DataFrame([budget, none, of_cluster], infer_schema_length=None)

    assert list(WORDS.objectives(pl.DataFrame([objective]))) == [
        "- Objective fleet: 50.0 %, target 60.0 %, error budget 125.0 % spent, burning now; "
        "unclassified time (25.0 %) spends none"
    ]
    assert list(WORDS.budgets(budgets, None)) == [
        "- Budget of nlp: $10.00 of $40.00 spent, month to date (25.0 %)",
        "- Budget of cv (c): $10.00 of $40.00 spent, month to date (25.0 %), forecast $50.00, "
        "over the budget",
    ]
    assert len(list(WORDS.budgets(budgets, "cv"))) == 1


HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
START = 100 * DAY_MS
DAY = Scope(from_ms=START, to_ms=START + DAY_MS)


def clusters(**spans):
    """Give marts.clusters with these first and last hours, from the start of the range."""
    return pl.DataFrame([
        {"cluster": name, "first_at": at(first), "as_of_at": at(last)}
        for name, (first, last) in spans.items()
    ]).with_columns(whole_hours_until_at=pl.lit(None, pl.Datetime("ms")))  # fmt: skip


def at(hours):
    return datetime.fromtimestamp((START + hours * HOUR_MS) / 1000, UTC).replace(tzinfo=None)


def hours(pair):
    """Return a pair of scopes as cluster and hours from the start of the range."""
    return [
        (scope.cluster, (scope.from_ms - START) / HOUR_MS, (scope.to_ms - START) / HOUR_MS)
        for scope in pair
    ]


@each({"week before": ({"a": (-200, 24)}, [[(None, 0, 24), (None, -168, -144)]], ()),
"day before": ({"a": (-48, 24)}, [[(None, 0, 24), (None, -24, 0)]], ()),
"ends alike": ({"a": (-48, 23.9), "b": (-48, 24)}, [[(None, 0, 23.9), (None, -24, -0.1)]], ()),
"own hours": ({"a": (-48, 20), "b": (-18, 24)},
     [[("a", 0, 20), ("a", -24, -4)], [("b", 6, 24), ("b", -18, 0)]], ()),
"little": ({"a": (-48, 24), "new": (-1, 24)},
     [[("a", 0, 24), ("a", -24, 0)]], ("new (data of 1h in both)",)),
"new": ({"a": (-48, 24), "new": (0, 24)},
     [[("a", 0, 24), ("a", -24, 0)]], ("new (no data in the day before)",)),
"old": ({"a": (-48, 24), "old": (-48, -2)},
     [[("a", 0, 24), ("a", -24, 0)]], ("old (no data in this range)",)),
"gone": ({"a": (-48, 24), "gone": (-90, -30)}, [[(None, 0, 24), (None, -24, 0)]], ()),
})  # fmt: skip
def test_both_windows_are_cut_to_what_both_cover(spans, pairs, left_out):
    found = next(like_for_like.windows(DAY, clusters(**spans)))
    assert [hours(pair) for pair in found.pairs] == pairs
    assert found.left_out == left_out


def test_both_windows_have_whole_hours_where_no_more_is_known_of_the_earlier():
    known = clusters(a=(-200.2, 23.5)).with_columns(whole_hours_until_at=pl.lit(at(-2)))
    range_ = Scope(from_ms=START + HOUR_MS // 2, to_ms=START + DAY_MS)

    found = next(like_for_like.windows(range_, known))

    assert [hours(pair) for pair in found.pairs] == [[("a", 1, 23), ("a", -167, -145)]]


@pytest.mark.parametrize("spans", [{"a": (0, 24)}, {"a": (-200, -30)}])
def test_nothing_is_compared_where_nothing_is_known_of_before(spans):
    assert list(like_for_like.windows(DAY, clusters(**spans))) == []


OF_WEEKS = "the same hours of the week before"
test_a_reader_chooses_the_earlier_window = gives(
    lambda start, days, name: [
        (shift / DAY_MS, said)
        for shift, said in like_for_like.shifts(
            ms(start), ms(start) + days * DAY_MS, like_for_like.Baseline(name, BERLIN)
        )
    ],
    ("2026-11-01", 1, "", [(7, OF_WEEKS), (1, "the day before")]),
    ("2026-11-01", 8, "", [(8, "the 8d before")]),
    ("2026-11-01", 1, "window", [(1, "the day before")]),
    ("2026-11-01", 7, "week", [(7, OF_WEEKS)]),
    ("2026-11-01", 30, "week", [(35, "the same hours 5 weeks before")]),
    ("2026-11-01", 30, "month", [(31 + 1 / 24, "the same days of the month before")]),
    ("2026-03-01", 31, "month", [(28, "the same days of the month before")]),
    ("2026-03-31", 1, "month", [(31 - 1 / 24, "the same days of the month before")]),
    ("2026-03-01", 60, "month", [(59, "the same days 2 months before")]),
    ("2026-11-01", 1, "none", []),
)  # fmt: skip


def ms(day):
    """Return the start of a day in Berlin in epoch ms."""
    return round(datetime.fromisoformat(day).replace(tzinfo=BERLIN).timestamp() * 1000)


def test_the_end_of_a_longer_month_is_left_out_of_both():
    march = Scope(from_ms=ms("2026-03-01"), to_ms=ms("2026-03-01") + 31 * DAY_MS)
    known = clusters(a=((march.from_ms - START) / HOUR_MS - 2000, 500_000))

    (found,) = like_for_like.windows(march, known, like_for_like.Baseline("month", BERLIN))

    assert found.common_ms == 28 * DAY_MS
    assert found.left_out == ("the last 3d",)


OF_TEAM = dict.fromkeys(("wasted", "gpu_ms", "covered_ms", "most"), pl.Int64)


def of_team(*row):
    rows = [("a", *row)] if row else []
    return pl.DataFrame(rows, orient="row", schema={"team": pl.String, **OF_TEAM})


test_the_direction_of_a_row_is_certain_or_not = gives(
    lambda now, then: like_for_like.beside(
        of_team(*now), of_team(*then), ("team",), "wasted", "most"
    ).row(0)[2:],
    ((3, 10, 9, 4), (1, 10, 9, 2), (2, "more")),
    ((3, 10, 9, 4), (), (3, "more")),
    ((), (3, 10, 9, 4), (-3, "less")),
    ((3, 10, 9, 4), (1, 10, 8, 2), (2, "direction not certain")),  # evidence moved
    ((3, 10, 9, 4), (1, 10, 9, 5), (2, "direction not certain")),  # bounds differ
    ((3, 10, 9, 4), (3, 10, 2, 9), (0, "unchanged")),
)


def ledger(productive, unknown, idle):
    return pl.DataFrame({
        "category": ["productive", "unknown", "idle_held"], "cost": [None, None, 1.0],
        "kind": ["goodput", "unsettled", "badput"], "gpu_ms": [productive, unknown, idle],
    }, schema_overrides={"cost": pl.Float64})  # fmt: skip


@each({
    "same way": ((60, 10, 30), (50, 10, 40), 0.1, 60 / 90 - 50 / 90, True),
    "signs differ": ((60, 10, 30), (50, 30, 20), 0.1, 60 / 90 - 50 / 70, False),
    "evidence moved": ((60, 10, 30), (40, 20, 40), 0.2, 60 / 90 - 40 / 80, False),
})  # fmt: skip
def test_a_direction_may_be_certain(now, then, ratio, classified, is_certain):
    found = like_for_like.change(ledger(*now), ledger(*then))
    assert found.ratio == pytest.approx(ratio)
    assert found.classified == pytest.approx(classified)
    assert found.is_certain is is_certain


def test_ledgers_are_summed_by_category_no_price_stays_none_and_no_capacity_has_no_change():
    found = like_for_like.summed([ledger(1, 2, 3), ledger(10, 20, 30)])
    assert found["gpu_ms"].to_list() == [11, 22, 33]
    assert found["cost"].to_list() == [None, None, 2.0]
    assert like_for_like.change(ledger(1, 1, 1), ledger(0, 0, 0)) is None
