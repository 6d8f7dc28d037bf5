"""Parts of the GPU and Node pages: lanes, lines and tables from the data of a scope."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import polars as pl
import streamlit as st

from goodput_app.dashboard import table_columns, theme
from goodput_app.dashboard.components import charts, places
from goodput_app.dashboard.data import metrics
from goodput_app.dashboard.figures import telemetry as figures
from goodput_app.dashboard.scope import View

LINES_MAX = 12
DEVICE = ("power_w", "sm_clock_hz", "memory_clock_hz", "gpu_temperature_c", "memory_temperature_c")
CATEGORY = "Category"
REASONS = {
    "power_cap": "Power cap",
    "hw_slowdown": "Hardware slowdown",
    "sw_thermal": "Thermal (software)",
    "hw_thermal": "Thermal (hardware)",
    "power_brake": "Power brake",
}
PRECISION = {"approximate": " (time approximate)", "at_or_before": " (at this time or before)"}


def holders(allocations: pl.DataFrame, lane_of: Mapping[tuple[str, str], str]) -> pl.DataFrame:
    """Return allocations as bars; lane_of: (gpu_uuid, gpu_instance) -> lane."""
    rows = []
    for row in allocations.iter_rows(named=True):
        lane = lane_of.get((row["gpu_uuid"], row["gpu_instance"]))
        if lane is None or row["end_at"] <= row["start_at"]:
            continue
        name = row["job_name"] or row["run_id"] or row["job_run_key"]
        parts = (row["run_id"], row["job_name"], row["team"], row["user_name"])
        hover = " / ".join(theme.plotly_text(part) for part in parts if part)
        bar = {"name": name, "hover": hover, "lane": lane}
        rows.append({**bar, "start_at": row["start_at"], "end_at": row["end_at"]})
    schema = {name: pl.String() for name in ("name", "hover", "lane")}
    times = {name: allocations.schema[name] for name in ("start_at", "end_at")}
    return pl.DataFrame(rows, schema={**schema, **times}).sort("lane", "start_at")


def reasons(series: pl.DataFrame, bin_ms: int) -> pl.DataFrame:
    """Return the bins in which samples carried a reason why clocks are lower, joined: bars."""
    found = []
    for name, label in REASONS.items():
        of_it = series.filter(pl.col(name) > 0).select("at").unique().sort("at")
        if of_it.is_empty():
            continue
        apart = (pl.col("at").diff().dt.total_milliseconds() > bin_ms).fill_null(value=True)
        found.append(
            of_it.with_columns(nr=apart.cum_sum())
            .group_by("nr")
            .agg(
                start_at=pl.col("at").min(),
                end_at=pl.col("at").max() + pl.duration(milliseconds=bin_ms),
            )
            .select(pl.lit(label).alias("lane"), "start_at", "end_at")
            .sort("start_at")
        )
    empty = series.select(lane=pl.lit(""), start_at="at", end_at="at").clear()
    casts = [pl.col(name).cast(empty.schema[name]) for name in ("start_at", "end_at")]
    return pl.concat([frame.with_columns(casts) for frame in found]) if found else empty


def marks(events: pl.DataFrame, lane: pl.Expr) -> pl.DataFrame:
    """Return events as markers: `lane`, `at` and `hover`."""
    hovers = [
        f"{theme.plotly_text(event_name(row))}{PRECISION.get(row['ts_precision'], '')}"
        f"<br>{theme.plotly_text(row['meaning'] or '', 120)}"
        for row in events.iter_rows(named=True)
    ]
    hover = pl.Series("hover", hovers, dtype=pl.String)
    return events.select(lane.alias("lane"), hover, at="event_at")


def chosen_at(events: pl.DataFrame) -> datetime | None:
    """Return when the event was that is picked in `events_table`."""
    of = table_columns.table("telemetry.events")
    found = events.filter(places.ids(events, of.id) == st.query_params.get(of.key, ""))
    return None if found.is_empty() else found["event_at"].item(0)


def event_name(row: Mapping[str, Any]) -> str:
    """Return `Xid 79`, or what else happened."""
    if row["kind"] in ("xid", "sxid") and row["code"] is not None:
        return f"{'Xid' if row['kind'] == 'xid' else 'SXid'} {row['code']}"
    return str(row["kind"]).replace("_", " ")


def lines(
    series: pl.DataFrame, names: Mapping[tuple[str, str], str], shown: Sequence[str]
) -> list[figures.Line]:
    """Return the line of each GPU or instance of `names`.

    What the instances of a device repeat (power, clocks, temperature) has the first one alone.
    """
    found: list[figures.Line] = []
    seen: set[str] = set()
    for (gpu, instance), name in names.items():
        own = series.filter((pl.col("gpu_uuid") == gpu) & (pl.col("gpu_instance") == instance))
        if own.is_empty():
            continue
        columns = [m for m in shown if gpu not in seen or m not in DEVICE]
        found.append(figures.Line(name, metrics.with_holes(own, columns)))
        seen.add(gpu)
    return found


def measured(series: pl.DataFrame, *, has_extremes: bool = True) -> pl.DataFrame:
    """Return the table of what is drawn: the columns that have values."""
    kept = [c for c in series.columns if series[c].null_count() < series.height]
    left_out = ("_last",) if has_extremes else ("_last", "_min", "_max")
    return series.select(c for c in kept if not c.endswith(left_out))


def events_table(events: pl.DataFrame) -> None:
    """Draw the events of GPUs; a picked one has links."""
    names = [event_name(row) for row in events.iter_rows(named=True)]
    shown = events.with_columns(
        pl.Series("event", names, dtype=pl.String), pl.col("severity").str.replace_all("_", " ")
    )
    places.table("telemetry.events", shown)


def with_reasons(frame: pl.DataFrame) -> pl.DataFrame:
    """Return rows with the reasons of throttling in words."""
    return frame.with_columns(
        pl.col("reason").replace({**REASONS, "hw_power_brake": "Power brake"})
    )


def throttled_table(found: pl.DataFrame, key: str) -> None:
    """Draw whether throttling is passing or chronic. `found`: marts.throttled_gpus."""
    shown = with_reasons(found).with_columns(pl.col("recurrence").fill_null("not known"))
    places.table("telemetry.throttled", shown, key=key)


def allocations_table(allocations: pl.DataFrame) -> None:
    """Draw which runs held the GPUs, the latest first; a picked one has a link."""
    by = ("run_key", "run_id", "job_run_key", "job_name", "team", "user_name", "attempt")
    of_runs = (
        allocations.group_by(by)
        .agg(
            pl.col("start_at").min(),
            pl.col("end_at").max(),
            gpus=pl.struct("gpu_uuid", "gpu_instance").n_unique(),
        )
        .with_columns(
            pl.coalesce("job_name", "run_id").alias("run_name"),
            length_s=(pl.col("end_at") - pl.col("start_at")).dt.total_seconds(),
        )
        .sort("start_at", "job_run_key", descending=True)
    )
    places.table("telemetry.allocations", of_runs)


def draw(
    view: View,
    lanes: figures.Lanes,
    found: Sequence[figures.Line],
    limits: Mapping[str, Any],
    rows: pl.DataFrame,
    key: str,
    alt: str,
    more: Sequence[figures.Panel] = (),
    shares: figures.Shares | None = None,
) -> None:
    """Draw lanes and metrics, and name what is not measured. more: panels below those of GPUs."""
    every = figures.panels(dict(limits))
    shown = without_lesser_activity([p for p in every if figures.is_measured(p, found)])
    figure = figures.on_one_axis(lanes, [*shown, *more], found, view.window, shares)
    charts.over_time(figure, rows, key, alt)
    say_missing(every, shown)


def say_missing(every: Sequence[figures.Panel], shown: Sequence[figures.Panel]) -> None:
    """Name the metrics that are not measured, and the counters that bring them."""
    titles = {panel.title for panel in shown}
    others = set(figures.ACTIVITY) if titles & set(figures.ACTIVITY) else set()
    missing = [
        panel.title + (f" ({panel.counters})" if panel.counters else "")
        for panel in every
        if panel.title not in titles | others
    ]
    if missing:
        st.caption(
            f"Not measured here: {theme.markdown_text('; '.join(missing), 600)}. Stock exporters "
            "leave some counters out; `goodput doctor` says which lines enable them."
        )


def without_lesser_activity(shown: Sequence[figures.Panel]) -> list[figures.Panel]:
    """Return the panels with one measure of activity, the most telling one."""
    activity = next((panel.title for panel in shown if panel.title in figures.ACTIVITY), "")
    return [p for p in shown if p.title == activity or p.title not in figures.ACTIVITY]
