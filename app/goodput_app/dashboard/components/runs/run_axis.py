"""The page of a run on one time axis: queue, attempts, steps, telemetry of its GPUs, events."""

from dataclasses import replace
from datetime import datetime

import polars as pl
import streamlit as st

from goodput_app.dashboard import theme
from goodput_app.dashboard.components import charts, scope_bar
from goodput_app.dashboard.components import telemetry_parts as parts
from goodput_app.dashboard.components.runs import run_parts
from goodput_app.dashboard.data import marts, metrics, run_axis, spread
from goodput_app.dashboard.figures import runs as figures_runs
from goodput_app.dashboard.figures import telemetry as figures
from goodput_app.dashboard.scope import View
from goodput_app.settings import settings
from goodput_app.text import units
from goodput_queries.scope import Scope, epoch_ms

QUEUE = "Queue"
ACTIVE = "active"  # of the link: ranks are coloured by it
FIRST = ("Step time", *figures.ACTIVITY, "Power")  # of panels; the others are folded
STEPS = figures.Panel("Step time", {"step_s": "", "median_step_s": "median of the attempt"}, "s")


def draw(view: View, *, is_serving: bool = False) -> None:
    """Draw the run's lanes, steps and telemetry on an axis of the run's time in the window."""
    scope = view.scope
    timeline, waits = run_axis.timeline(scope), run_axis.waits(scope)
    steps, events = marts.train_steps(scope), run_axis.events(scope)
    held = run_axis.allocated(scope)
    gpus = held["gpus"][0] if held.height else 0
    # a run of minutes is a point in the bins of a day
    from_ms, to_ms = map(epoch_ms, extent(view.window, held))
    of_run = replace(scope, from_ms=from_ms, to_ms=to_ms)
    read = metrics.resolution_of(of_run, gpus)
    telemetry = run_axis.telemetry(of_run, read)
    of_steps = steps_in_order(steps)
    lines = [
        figures.Line(
            "mean of its GPUs",
            metrics.with_holes(telemetry, metrics.METRICS),
            spread.bands(telemetry, metrics.METRICS),
        )
    ]
    if not of_steps.is_empty():
        lines.append(figures.Line("steps", of_steps))
    every = (STEPS, *figures.panels({"mfu_target": settings().ui.mfu_target}))
    shown = [panel for panel in every if figures.is_measured(panel, lines)]
    shown = parts.without_lesser_activity(shown)
    details = [panel for panel in shown if panel.title not in FIRST]
    shown = [panel for panel in shown if panel.title in FIRST]
    times = ("start_at", "end_at")
    window = extent(
        view.window,
        pl.concat([f.select(times) for f in (timeline, waits, held)], how="vertical_relaxed"),
    )
    lanes, shares = _lanes(timeline, waits, events), _shares(of_run, is_serving)
    if not lanes.names and not shown and shares is None:
        st.caption("When it did what is not known: no job event or reading is in this time range.")
        return
    figure = figures.on_one_axis(lanes, shown, lines, window, shares)
    rows = timeline.sort("start_at").drop("colour")
    charts.over_time(
        figure, rows, "run-axis", "What the run did when, and the telemetry of its GPUs"
    )
    st.caption(_said(timeline, telemetry, gpus, read, is_serving))
    if telemetry.height:
        parts.say_missing(every, [*shown, *details, STEPS])
    if events.height:
        parts.events_table(events)
    if not details:
        return
    folded = st.expander(
        "More metrics of its GPUs", key="run_details", on_change="rerun",
        icon=":material/monitoring:",
    )  # fmt: skip
    if folded.open:
        with folded:
            more = figures.on_one_axis(figures.Lanes([]), details, lines[:1], window)
            rows = telemetry.select("at", *(m for panel in details for m in panel.metrics))
            charts.over_time(more, rows, "run-metrics", "More metrics of the run's GPUs")


def _shares(scope: Scope, is_serving: bool) -> figures.Shares | None:
    """Return where the run's GPU time went in each bin of the scope's window."""
    found, bin_ms = run_axis.ledger_bins(scope)
    if is_serving:
        found = run_parts.served(found)
    return figures.Shares(found, bin_ms) if found.height else None


def steps_in_order(steps: pl.DataFrame) -> pl.DataFrame:
    """Return `at`, step time and median in order, with an empty row between attempts."""
    columns = {"at": "end_at", "step_s": "step_s", "median_step_s": "median_step_s"}
    found = steps.sort("attempt", "end_at").select("attempt", **columns)
    parts: list[pl.DataFrame] = []
    for _, of_it in found.group_by("attempt", maintain_order=True):
        rows = of_it.drop("attempt")
        end = rows.tail(1).with_columns(step_s=None, median_step_s=None).cast(rows.schema)
        parts += [rows, end]
    return pl.concat(parts[:-1]) if parts else found.drop("attempt")


def extent(window: tuple[datetime, datetime], times: pl.DataFrame) -> tuple[datetime, datetime]:
    """Return from when to when anything is known of the run within the window.

    times: `start_at` and `end_at` of all that is drawn
    """
    first, last = times["start_at"].min(), times["end_at"].max()
    start = max(window[0], first) if isinstance(first, datetime) else window[0]
    end = min(window[1], last) if isinstance(last, datetime) else window[1]
    return (start, end) if start < end else window


def _said(
    timeline: pl.DataFrame,
    telemetry: pl.DataFrame,
    gpus: int,
    read: metrics.Resolution,
    is_serving: bool,
) -> str:
    """Return the resolution of the chart, and what it lacks."""
    pieces = 0 if timeline.is_empty() else timeline["pieces"][0]
    texts = [
        f"The {timeline.height:,} longest of {pieces:,} pieces." if pieces > len(timeline) else "",
        "No job events received: the lanes show only the queue."
        if timeline.is_empty() and not is_serving
        else "",
        f"No readings of its {units.count(gpus, 'GPU')} in this time range."
        if telemetry.is_empty()
        else f"{read.name}: the mean of {units.count(gpus, 'GPU')}; grey band: 5th to 95th "
        "percentile. A line breaks where samples are missing.",
    ]
    return " ".join(filter(None, texts))


def _lanes(timeline: pl.DataFrame, waits: pl.DataFrame, events: pl.DataFrame) -> figures.Lanes:
    bars = ("lane", "label", "colour", "hover", "start_at", "end_at")
    pieces = timeline.drop_nulls(["start_at", "end_at"])
    named = ["<br>".join(map(theme.plotly_text, hover.split("<br>"))) for hover in pieces["hover"]]
    attempts = pieces.with_columns(
        pl.Series("hover", named, dtype=pl.String), lane=pl.format("attempt {}", "attempt")
    )
    jobs = [f"Job {theme.plotly_text(job)} waiting for GPUs" for job in waits["job_id"].to_list()]
    queue = waits.with_columns(
        pl.Series("hover", jobs, dtype=pl.String),
        lane=pl.lit(QUEUE), label=pl.lit("Waiting for GPUs"), colour=pl.lit("free_demand"),
    )  # fmt: skip
    marks = parts.marks(events, pl.lit(figures.EVENTS))
    names = attempts.sort("attempt")["lane"].unique(maintain_order=True).to_list()
    return figures.Lanes(
        [
            *([QUEUE] if not waits.is_empty() else []),
            *names,
            *([figures.EVENTS] if not marks.is_empty() else []),
        ],
        categories=pl.concat([attempts.select(bars), queue.select(bars)], how="vertical_relaxed"),
        events=marks,
        chosen_at=parts.chosen_at(events),
    )


def ranks(view: View, *, is_serving: bool = False) -> None:
    """Draw how late each rank was over time, or how active its GPU was.

    The latter where it is chosen, where nobody measures how late they were, and of serving engines.
    """
    held = run_axis.allocated(view.scope)
    window = extent(view.window, held)
    from_ms, to_ms = map(epoch_ms, window)
    of_run = replace(view.scope, from_ms=from_ms, to_ms=to_ms)
    late = run_axis.lateness(of_run)
    if late.is_empty() and not is_serving:
        st.caption(
            "How late each rank was is not known: no source measures how long the ranks of this "
            "run waited for each other (job events with `comm_s` or waits, NCCL profiler, traces)."
        )
    elif not late.is_empty():
        with st.columns([1, 3])[0]:
            scope_bar.choice("ranks", "Colour", {ACTIVE: "How active its GPU was"}, none="How late")
    if late.is_empty() or st.query_params.get("ranks") == ACTIVE:
        if not held.is_empty():
            _activity(of_run, held["gpus"][0], window, "each" if is_serving else "each rank's")
        return
    charts.draw(
        figures_runs.lateness(late, window), late, "rank-lateness", "How late each rank was"
    )
    st.caption("A rank's own work above the median of its attempt. Empty: no steps.")


def _activity(of_run: Scope, gpus: int, window: tuple[datetime, datetime], whose: str) -> None:
    found, metric = run_axis.activity(of_run, gpus)
    if found.is_empty():
        st.caption("No source read how active its GPUs were in this time range.")
        return
    title = next(panel.title for panel in figures.panels({}) if metric in panel.metrics)
    figure = figures_runs.activity(found, metric, title, window)
    charts.draw(figure, found, "rank-activity", "How active each GPU of the run was")
    st.caption(f"{title} of {whose} GPU while the run had it. Empty: no readings.")


def collectives(view: View) -> None:
    """Draw when each rank was in which collective."""
    found, total = run_axis.collectives(view.scope)
    if found.is_empty():
        st.caption(
            "When the collectives ran is not known. NCCL Inspector writes it with "
            "`NCCL_INSPECTOR_DUMP_VERBOSE=1`; PyTorch profiler (Kineto) traces have it too."
        )
        return
    charts.over_time(
        figures_runs.collectives(found), found, "collectives", "Collectives of each rank over time"
    )
    st.caption(
        "A bar ends for all ranks at once: the rank whose bar is shortest came last."
        + (
            f" {found.height:,} of {total:,} bars, around the longest wait; choose a shorter time "
            "range for others."
            if found.height < total
            else ""
        )
    )
