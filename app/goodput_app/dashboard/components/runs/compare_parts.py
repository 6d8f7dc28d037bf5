"""Parts of the Compare page: its two sides, the answer, what differs, files of it."""

from dataclasses import replace
from datetime import UTC

import polars as pl
import streamlit as st

from goodput_app.dashboard import theme, time_zone
from goodput_app.dashboard.components import charts, scope_bar, tables, tiles
from goodput_app.dashboard.components.rows import downloads
from goodput_app.dashboard.data import marts, speed
from goodput_app.dashboard.figures import compare as figures
from goodput_app.dashboard.scope import View
from goodput_app.dashboard.table_columns import headers
from goodput_app.settings import settings
from goodput_app.text import units
from goodput_app.time_expressions import moment_ms
from goodput_queries.errors import QueryError
from goodput_queries.scope import Scope, epoch_ms, utc_at
from goodput_scenarios.comparison import report
from goodput_scenarios.comparison.aligned import PROGRESS, STEP, aligned
from goodput_scenarios.comparison.compare import Comparison
from goodput_scenarios.comparison.differences import Difference
from goodput_scenarios.comparison.gate import shown
from goodput_scenarios.comparison.sides import Side
from goodput_scenarios.comparison.speeds import Speed

MODES = {"": "Two runs", "time": "Before and after"}
WARNINGS_MAX = 3
SPANS = {"1h": 3_600, "6h": 21_600, "1d": 86_400, "7d": 604_800}
SPAN_NAMES = {"1h": "1 hour", "6h": "6 hours", "1d": "1 day", "7d": "7 days"}
MEASURES = headers("compare.measures")
ATTRIBUTES = {"label": "Attribute", "a": "A", "b": "B"}
FORM_NAMES = {"text": "Text", "json": "JSON", "markdown": "Markdown", "html": "HTML"}
MIME = {
    "text": "text/plain",
    "json": "application/json",
    "markdown": "text/markdown",
    "html": "text/html",
}


def mode() -> str:
    """Draw the switch between runs and time ranges, and return what the URL names."""
    return scope_bar.switch("by", "Compare", MODES)


def runs(view: View) -> tuple[Side, Side] | None:
    """Draw the choice of two runs and return them; None until both are chosen.

    Runs are compared as a whole, whatever part of them the time range shows.
    """
    values = marts.scope_values(view.scope)
    sides = []
    for column, name, label in zip(
        st.columns(2), ("a", "b"), ("Run A (before)", "Run B (after)"), strict=True
    ):
        wanted = st.query_params.get(name)
        options = scope_bar.options_of(values, "run", wanted)
        with column:
            scope_bar.choice(name, label, options, none="Choose a run")
        if wanted:
            of_run = Scope(run=wanted, teams=view.scope.teams)
            sides.append(Side(theme.printable(options.get(wanted, wanted)), of_run))
    return (sides[0], sides[1]) if len(sides) == 2 else None


def time_ranges(view: View) -> tuple[Side, Side] | None:
    """Draw the choice of a time and return the ranges before and after it; None until it is set."""
    time, span = st.columns(2)
    zone = time_zone.name()
    with time:
        st.session_state["compare_at"] = st.query_params.get("at", "")
        st.text_input(
            f"Time of the change ({zone})",
            key="compare_at",
            placeholder="2026-11-20 14:00, or now-6h",
            on_change=lambda: scope_bar.go({"at": st.session_state["compare_at"] or None}),
        )
    with span:
        scope_bar.choice("span", "Compare", SPAN_NAMES, none="The whole time range")
    if not (text := st.query_params.get("at")):
        return None
    try:
        now = view.now.replace(tzinfo=UTC)
        at_ms = moment_ms(text, now, is_end=False, zone=time_zone.zone())
    except QueryError as error:
        st.warning(theme.markdown_text(str(error)), icon=":material/schedule:")
        return None
    seconds = SPANS.get(st.query_params.get("span", ""))
    start_ms, end_ms = epoch_ms(view.start), epoch_ms(view.end)
    if seconds is not None:
        start_ms, end_ms = at_ms - 1000 * seconds, at_ms + 1000 * seconds
    if not start_ms < at_ms < end_ms:
        st.warning("This time is outside the time range.", icon=":material/schedule:")
        return None
    ranges = ((start_ms, at_ms), (at_ms, end_ms))
    before, after = (
        Side(
            time_zone.window(utc_at(first), utc_at(last)),
            replace(view.scope, from_ms=first, to_ms=last, bucket_ms=None),
        )
        for first, last in ranges
    )
    return before, after


def answer(found: Comparison) -> None:
    """Draw what differs in speed, in a sentence and in tiles, and why not to believe it."""
    best = next((one for one in found.speeds if one.difference is not None), None)
    _not_comparable([one for one in found.speeds if one.reason is not None])
    if best is None:
        st.info(
            "Speed cannot be compared: no workload ran steps on both sides.",
            icon=":material/hourglass_empty:",
        )
    else:
        _tiles(best)
    for note in found.notes:
        if "not comparable" not in note:
            st.caption(theme.markdown_text(note))


def _not_comparable(speeds: list[Speed]) -> None:
    """Draw why workloads are not comparable, in one box: the table has all of them."""
    if not speeds:
        return
    lines = [f"{one.workload} is not comparable: {one.reason}." for one in speeds[:WARNINGS_MAX]]
    if (more := len(speeds) - WARNINGS_MAX) > 0:
        lines.append(f"{units.count(more, 'more workload')} not comparable.")
    st.warning("  \n".join(map(theme.markdown_text, lines)), icon=":material/block:")


def _tiles(speed_of: Speed) -> None:
    found, steps = speed_of.difference, speed_of.step_time
    if found is None or steps is None:
        return
    unit = f"{speed_of.unit}/s"
    st.caption(f"Workload: {theme.markdown_text(speed_of.workload)}")
    speeds: list[tiles.Tile] = [
        (f"Speed of {name}", report.number(side.speed), f"{unit}, {side.count:,} {speed_of.basis}")
        for name, side in (("A", found.a), ("B", found.b))
    ]
    changes: list[tiles.Tile] = [
        (f"Change of {of}", shown(one.change_ratio), _interval(one))
        for of, one in (("speed", found), ("step time", steps))
    ]
    tiles.row("compare-tiles", [*speeds, *changes])


def _interval(found: Difference) -> str:
    return f"{report.interval(found.low_ratio, found.high_ratio)} (95 %)"


def measures(found: Comparison) -> None:
    """Draw each measure of both sides with its difference."""
    rows = report.measures_shown(found, units.currency())
    workloads = [] if rows["workload"].drop_nulls().n_unique() > 1 else ["workload"]
    columns = MEASURES.hiding([*MEASURES.hidden, *workloads])
    tables.show(rows, columns, "compare_measures")


def attributes(found: Comparison) -> None:
    """Draw what the two sides ran with, where it differs."""
    differing = found.attributes.filter("is_different")
    same = found.attributes.height - differing.height
    if differing.is_empty():
        st.caption(f"No difference in what is known of both ({units.count(same, 'attribute')}).")
        return
    tables.show(differing, ATTRIBUTES, "compare_attributes")
    st.caption(f"{same} more attributes, the same on both sides.")


def ledger(found: Comparison) -> None:
    """Draw which categories moved the goodput of allocated time."""
    if not found.a.held_ms or not found.b.held_ms:
        st.caption("One side had no GPUs in its time range.")
        return
    charts.draw(
        figures.delta_waterfall(found.ledger),
        found.ledger.drop("colour"),
        "compare-ledger",
        "From the goodput of A to that of B, category by category",
    )


def over_steps(found: Comparison) -> None:
    """Draw step time and speed of both sides, by step or by work done."""
    speed_of = next((one for one in found.speeds if one.difference is not None), None)
    if speed_of is None:
        st.caption("No workload with steps is on both sides.")
        return
    unit = speed_of.unit
    titles = {STEP: "step", PROGRESS: f"{unit} done"}
    current = st.query_params.get("align", STEP)
    current = current if current in titles else STEP
    st.session_state["compare_align"] = current
    st.segmented_control(
        "Align by",
        list(titles),
        key="compare_align",
        format_func=lambda name: {STEP: "By step", PROGRESS: "By progress"}[name],
        on_change=lambda: scope_bar.go({"align": st.session_state["compare_align"] or None}),
        label_visibility="collapsed",
    )
    rows = aligned(found, speed_of, current)
    for column, axis, key in (
        ("step_{}_s", "step time (s)", "compare-step-times"),
        ("speed_{}", f"{unit}/s", "compare-speeds"),
    ):
        figure = figures.on_one_axis(rows, column, axis, titles[current])
        charts.draw(figure, rows, key, f"{axis} of A and B by {titles[current]}")


def files(found: Comparison) -> None:
    """Draw a button for each file that a comparison can be written as."""
    currency = settings().statement.currency
    with st.container(horizontal=True):
        for suffix, form in report.SUFFIXES.items():
            data, file = report.FORMATS[form](found, currency), f"goodput-compare{suffix}"
            downloads.button(FORM_NAMES[form], data, file, f"compare_{form}", MIME[form])


def changes(view: View) -> None:
    """Draw changes of code, versions and settings between runs; a pick compares both runs."""
    frame = speed.version_changes(view.scope)
    if frame.is_empty():
        st.caption(
            "No run in this time range had another commit, image, version or power limit than the "
            "run of the same workload before it."
        )
        return
    opens = [
        {"a": before, "b": after, "by": None}
        for before, after in frame.select("run_before", "run_key").rows()
    ]
    ids = pl.Series([f"{row[0]}|{row[1]}" for row in frame.select("run_key", "attribute").rows()])
    tables.pick(frame, headers("compare.changes"), "change", ids, rows=8, opens=opens)
