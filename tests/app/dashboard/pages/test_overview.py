"""The Overview as one answer: status, goodput and ledger, first actions, what moved, folds."""

import re
from dataclasses import replace
from datetime import datetime, timedelta

import polars as pl
import pytest
from tests.app.opened_page import links, page_of, plain, sent, texts, tile
from tests.recorded_session import extent_ms
from tests.tables import each, gives

from goodput_app.dashboard.components.overview import actions, ledger, status
from goodput_app.dashboard.data import health
from goodput_app.dashboard.data.findings import Found
from goodput_app.dashboard.figures import bars
from goodput_app.dashboard.figures.bars import Part
from goodput_app.dashboard.scope import View
from goodput_app.text import units
from goodput_app.weekly import like_for_like
from goodput_app.weekly.ledger_groups import by_team
from goodput_queries.scope import Scope

HOUR_MS = 3_600_000
NOON = datetime(2026, 11, 20, 12)  # noqa: DTZ001 -- UTC, as the database has it
ENDS = {"c": NOON, "later": NOON + timedelta(hours=1)}
VIEW = View(Scope(), NOON - timedelta(hours=24), NOON, NOON, NOON, "RECORDED")
FINDING = {
    "finding_key": "k", "rule": "node_down", "kind": "health", "severity": "page",
    "title": "A node is down", "subject": "n1", "cluster": "c", "node": "n1", "run_key": None,
    "run_name": None, "since_at": NOON - timedelta(hours=2), "until_at": None, "is_open": True,
    "open_severity": "page", "state": "open", "said_by": None, "owner": "operations",
    "gpu_ms": 57_600_000, "cost": 8.0, "evidence": "Not responding", "team": None,
}  # fmt: skip
CLOSED = {"is_open": False, "severity": "note", "until_at": NOON}
page = page_of("capture", "fleet_overview", work="open")


def said(*changes, unchecked="", outages=health.NO_OUTAGES):
    """Return the status of findings that differ from FINDING in these columns."""
    types = dict.fromkeys(("run_key", "run_name", "said_by", "node", "team"), pl.String)
    types |= {"until_at": pl.Datetime, "since_at": pl.Datetime}
    rows = pl.DataFrame([FINDING | change for change in changes], schema_overrides=types)
    return status.status(Found(rows, rows.clear()), 72, unchecked, outages, ENDS)


def test_the_worst_open_finding_is_the_sentence_and_what_is_broken_comes_first():
    found = said(
        {"severity": "ticket", "kind": "queue", "rule": "q", "title": "GPUs are free"},
        {"severity": "ticket"},
    )  # fmt: skip

    assert (found.kind, found.said) == ("ticket", "n1 is down")
    assert "Since 2026-11-20 10:00:00 UTC (2h)" in found.detail
    assert "$4.00 an hour" in found.detail, "8.00 of two hours"
    assert "$8.00 so far" in found.detail
    assert "owner <b>operations</b>, not acknowledged" in found.detail


@each({"closed": (CLOSED, "ok", "closed 2026-11-20 12:00:00 UTC (n1)"),
"note": ({"severity": "note", "open_severity": "note"}, "ok", "72 rules evaluated"),
"dismissed": ({"state": "dismissed"}, "ok", "72 rules evaluated"),
"acknowledged": ({"state": "acknowledged", "said_by": "ines"}, "page", "acknowledged by ines"),
"of a team": ({"owner": "team", "team": "<i>"}, "page", "owner <b>team &lt;i&gt;</b>"),
"hostile": ({"evidence": "<b>x</b>"}, "page", "&lt;b&gt;x&lt;/b&gt;"),
})  # fmt: skip
def test_the_sentence_says_what_is_open(change, kind, words):
    found = said(change)

    assert found.kind == kind
    assert words in found.detail
    if kind == "ok":
        assert found.said == "No page and no ticket is open"
        assert said(change, unchecked="Not checked: a").kind == "partial", "it is never green"


def test_a_drained_node_has_its_own_start_and_that_of_its_loss():
    start = NOON - timedelta(hours=4)
    row = {
        "cluster": "c", "node": "n1", "state": "drained", "start_at": start, "end_at": None,
        "out_at": FINDING["since_at"],
    }  # fmt: skip
    outages = pl.DataFrame([row], schema=health.NO_OUTAGES.schema)

    found = said({"title": "A node is drained", "since_at": start}, outages=outages)

    assert found.said == "n1 is drained"
    assert "Since 2026-11-20 08:00:00 UTC (4h), out of use since 10:00:00" in found.detail
    assert "$4.00 an hour" in found.detail, "8.00 of the two hours without a job"
    (mark,) = status.marks(outages, VIEW)
    assert mark[:2] == (start, "\u25b3 n1 drained")


def test_goodput_of_a_range_is_compared_with_the_one_before_and_the_sentence_is_of_now(
    capture, visit, page
):
    first, last = extent_ms(capture)
    length = (last - first) // 3
    now = Scope(from_ms=first + length, to_ms=first + 2 * length)
    then = replace(now, from_ms=first, to_ms=first + length)
    ends = pl.Series([now.from_ms, now.to_ms]).cast(pl.Datetime("ms"))
    begin, end = (f"{at.isoformat(timespec='milliseconds')}Z" for at in ends)

    app = visit(capture, **{"from": begin, "to": end})

    of_now, of_all = (
        [e.proto.body for e in one.get("html") if "gp-said" in e.proto.body] for one in (app, page)
    )
    assert of_now == of_all != []
    ratio = "select goodput_ratio from marts.goodput_summary"
    points = 100 * (capture.read(ratio, scope=now).item() - capture.read(ratio, scope=then).item())
    assert f"{abs(points):.1f} points" in sent(app)
    assert "No earlier window" not in sent(app)


def test_the_ledger_is_one_bar_of_nine_groups_that_lead_on(capture, page):
    shown = sent(page)
    summary = capture.read("from marts.goodput_summary").row(0, named=True)

    assert units.percent(summary["goodput_ratio"]) in shown
    assert units.gpu_time(summary["wasted_ms"]) in shown
    assert "no price" in shown
    assert "jobs report steps for" in texts(page).lower()
    opened = links(page)
    assert {"Useful", "Allocated but idle", "Not available"} <= set(opened)
    assert opened["Allocated but idle"]["category"] == ["idle_held"]
    assert shown.count('class="gp-group"') == 9
    assert "No earlier window is compared" in shown
    assert "no data from before this range" in plain(page)
    assert "in useful time they work at 95.6 % of it" in texts(page), "goodput by throughput"


def test_folds_are_read_once_they_are_open(capture, visit, page):
    assert all(len(f.value) == 0 or "wasted" not in str(f.value) for f in page.dataframe)

    opened = visit(capture, waste_team="research")
    assert links(opened)["Statement of research"]["team"] == ["research"]
    lost = capture.read("select sum(wasted_ms) / 60000 from marts.goodput_summary").item()
    (frame,) = (f.value for f in opened.dataframe if "wasted_gpu_min" in f.value)
    assert frame["wasted_gpu_min"].sum() == pytest.approx(float(lost))


def test_the_product_of_three_ratios_is_goodput(two_weeks, visit):
    app = visit(two_weeks, allocation="open", **{"from": "2027-01-18", "to": "2027-01-25"})
    assert tile(app, "Scheduling ratio") == tile(app, "Runtime ratio") == "100.0 %"
    assert tile(app, "Program ratio") == "not measured", "no step measures its communication"
    assert "coverage 0 %" in plain(app)


def test_the_parts_of_a_waterfall_add_up_to_both_totals():
    names = [f"g{n}" for n in range(8)]
    now, then = (
        pl.DataFrame({"category": names, "label": names, "colour": names, "wasted_cost": costs})
        for costs in ([1.0, 2, 3, 4, 5, 6, 7, None], [0.0, 5, 3, 3, 1, 9, 2, 4])
    )

    rows = like_for_like.changes(now, then, "wasted_cost")

    assert sum(amount for _, amount, _ in rows) == pytest.approx(28 - 27)
    assert len(rows) == like_for_like.SHOWN + 1
    assert rows[-1][0] == "others"
    assert "g2" not in {label for label, *_ in rows}, "it did not move"


test_the_axis_of_a_waterfall_shows_small_changes = gives(
    bars.axis,
    (100, [20, -30], (75, 120, [100, 120])), (10, [90], (0, 100, [10])), (5, [], (0, 5, [])),
)  # fmt: skip


def test_parts_of_a_bar_have_their_share_and_nothing_has_no_part():
    parts = [Part("Useful", 30, "productive"), Part("x", 0, None), Part("y", 10, None)]
    drawn = bars.stacked(parts, "n")
    assert [float(found) for found in re.findall(r"flex: ([\d.]+)", drawn)] == [0.75, 0.25]
    assert 'aria-label="n: Useful 75.0 %, y 25.0 %"' in drawn


def test_by_team_says_who_caused_what():
    rows = pl.DataFrame({
        "team": ["nlp", "nlp", None, "cv"], "blame": ["own", "platform", "reservation", "own"],
        "gpu_ms": [5, 2, 9, 1], "cost": [1.0, None, 2.5, None],
    })  # fmt: skip

    idle = pl.DataFrame({"team": ["nlp", None], "idle_ms": [3, 4]})

    teams = {row["team"]: row for row in by_team(rows, idle).to_dicts()}

    assert list(teams) == [None, "nlp", "cv"]
    assert (teams["nlp"]["own_waste_ms"], teams["nlp"]["platform_waste_ms"]) == (5, 2)
    assert (teams["nlp"]["own_waste_cost"], teams["nlp"]["platform_waste_cost"]) == (1.0, 0.0)
    assert (teams[None]["unallocated_ms"], teams[None]["own_waste_cost"]) == (9, 0.0)
    assert [teams[name]["executing_idle_ms"] for name in ("nlp", "cv", None)] == [3, None, None]
    assert teams["cv"]["wasted_cost"] is None, "not known, which is not zero"


test_a_saving_that_may_be_nothing_is_called_so = gives(
    lambda *back: actions._saving(
        dict(zip(("back_low_cost", "back_cost", "back_high_cost"), back, strict=True))
    ),
    (3.0, 3.0, 3.0, "<b>$3.00</b><small>measured</small>"),
    (0.0, 3.0, 3.0, "<b>up to $3.00</b><small>or nothing</small>"),
    (1.0, 3.0, 4.0, "<b>$3.00</b><small>$1.00 to $4.00</small>"),
    (None, None, None, "<b>no price</b>"),
)


def test_which_groups_are_wasted_is_said_so_that_they_add_up():
    groups = pl.DataFrame({
        "label": ["Useful", "Slowdowns", "Saves, input, other", "Unclassified", "Unallocated"],
        "gpu_ms": [9 * HOUR_MS, HOUR_MS, 3 * HOUR_MS, HOUR_MS, HOUR_MS],
        "wasted_ms": [0, HOUR_MS, 2 * HOUR_MS, 0, HOUR_MS],
    })  # fmt: skip

    said = (
        "Wasted: Slowdowns to Saves, input, other and Unallocated, "
        "less 1.0 GPU-h of declared or unknown time."
    )
    assert ledger._wasted(groups) == said
