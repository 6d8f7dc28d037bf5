"""A node on one time axis: events, state, jobs, where its time went, and what its GPUs read."""

from dataclasses import dataclass, replace
from typing import Any

import polars as pl
import streamlit as st

from goodput_app.dashboard import theme
from goodput_app.dashboard.components import charts, places
from goodput_app.dashboard.components import telemetry_parts as parts
from goodput_app.dashboard.components.fleet.what_happened import PARAM
from goodput_app.dashboard.data import ledger_groups, metrics, node_axis, spread
from goodput_app.dashboard.figures import telemetry as figures
from goodput_app.dashboard.scope import View
from goodput_app.text import units
from goodput_queries.scope import Scope

STATE, JOBS = "State", "Jobs"
STATE_COLOURS = {"down": "failed", "drained": "drained"}  # keys of the ledger's categories
TITLES = (*figures.ACTIVITY, "Power", "Temperature")
METRICS = ("sm_active_ratio", "engine_active_ratio", "gpu_busy_ratio", "power_w",
           "gpu_temperature_c")  # fmt: skip
WANTED = ("page", "ticket")


@dataclass(frozen=True)
class Node:
    """What is known of a node in the time range.

    gpus: marts.gpus; series, read: of its GPUs and how they are binned; outages, events,
    allocations, gaps: marts.node_outages, gpu_events, gpu_allocations, telemetry_gaps; links:
    `network.link_events`; ledger: marts.ledger_by_category; findings: marts.findings, None while
    they are evaluated
    """

    scope: Scope
    gpus: pl.DataFrame
    series: pl.DataFrame
    read: metrics.Resolution
    outages: pl.DataFrame
    events: pl.DataFrame
    allocations: pl.DataFrame
    links: pl.DataFrame
    gaps: pl.DataFrame
    ledger: pl.DataFrame
    findings: pl.DataFrame | None


def flagged(node: Node) -> list[str]:
    """Return the GPUs with a page or a ticket in the time range, else those with an event."""
    found: list[str] = []
    if node.findings is not None:
        worse = node.findings.filter(pl.col("severity").is_in(WANTED))
        found = worse["gpu_uuid"].drop_nulls().unique(maintain_order=True).to_list()
    return found or node.events["gpu_uuid"].drop_nulls().unique().sort().to_list()


def draw(view: View, node: Node, happened: pl.DataFrame) -> None:
    """Draw the node's lanes, its ledger in each bin, and activity, power and heat of its GPUs.

    happened: `what_happened.merged`, whose chosen row is marked
    """
    marked = marks(happened)
    chosen = happened.filter(pl.col("id") == st.query_params.get(PARAM, ""))
    held = jobs(node.allocations)
    outages = states(node.outages, view)
    reasons = parts.reasons(node.series, node.read.bin_ms)
    gaps = node.gaps.select(pl.lit(figures.NO_READINGS).alias("lane"), "start_at", "end_at")
    names = [
        *([figures.EVENTS] if marked.height else []),
        *([STATE] if outages.height else []),
        *held["lane"].unique(maintain_order=True).to_list(),
        *reasons["lane"].unique(maintain_order=True).to_list(),
        *([figures.NO_READINGS] if gaps.height else []),
    ]
    chosen_at = None if chosen.is_empty() else chosen["start_at"].item(0)
    lanes = figures.Lanes(names, held, outages, reasons, gaps, marked, chosen_at)
    lines = _lines(node)
    shown = [
        replace(panel, metrics={next(iter(panel.metrics)): ""})
        for panel in figures.panels({})
        if panel.title in TITLES and figures.is_measured(panel, lines)
    ]
    bins, bin_ms = node_axis.ledger_bins(node.scope)
    groups = _grouped(bins, node.ledger)
    shares = figures.Shares(groups, bin_ms) if groups.height else None
    figure = figures.on_one_axis(
        lanes, parts.without_lesser_activity(shown), lines, view.window, shares
    )
    charts.over_time(
        figure, groups, "node-axis",
        "Events, state and jobs of the node, where its GPU time went and what its GPUs read",
    )  # fmt: skip
    st.caption(
        f"{node.read.name}. Grey band: 5th to 95th percentile of GPUs of the same model elsewhere "
        "in the cluster. A line breaks where samples are missing."
    )


def marks(happened: pl.DataFrame) -> pl.DataFrame:
    """Return events of GPUs and links, and findings, as markers in one lane."""
    rows = happened.filter("is_mark")
    hovers = [
        f"{theme.plotly_text(what, 80)}<br>{theme.plotly_text(reason or '', 120)}"
        for what, reason in rows.select("what", "reason").iter_rows()
    ]
    hover = pl.Series("hover", hovers, dtype=pl.String)
    lane = pl.lit(figures.EVENTS).alias("lane")
    return rows.select(lane, hover, "severity", at="start_at")


def states(outages: pl.DataFrame, view: View) -> pl.DataFrame:
    """Return outages as bars; one that lasts ends with the time range."""
    labels = pl.col("state").str.to_titlecase()
    return outages.select(
        pl.lit(STATE).alias("lane"),
        "start_at",
        pl.col("end_at").fill_null(min(view.end, view.as_of)),
        label=labels,
        colour=pl.col("state").replace(STATE_COLOURS),
        hover=labels,
    ).filter(pl.col("end_at") > pl.col("start_at"))


def jobs(allocations: pl.DataFrame) -> pl.DataFrame:
    """Return job runs as bars; those that have GPUs at one time stand in lanes of their own."""
    of_jobs = (
        allocations.filter(pl.col("end_at") > pl.col("start_at"))
        .group_by("job_run_key", "attempt")
        .agg(
            pl.col("start_at").min(), pl.col("end_at").max(),
            pl.col("job_name", "run_id", "team", "user_name").first(),
            gpus=pl.struct("gpu_uuid", "gpu_instance").n_unique(),
        )
        .sort("start_at", "job_run_key")
    )  # fmt: skip
    lanes: list[Any] = []  # when each is free again
    rows = []
    for row in of_jobs.iter_rows(named=True):
        place = next((n for n, end in enumerate(lanes) if end <= row["start_at"]), len(lanes))
        lanes[place : place + 1] = [row["end_at"]]
        name = row["job_name"] or row["run_id"] or row["job_run_key"]
        said = (name, row["team"], row["user_name"], units.count(row["gpus"], "GPU"))
        rows.append({
            "lane": JOBS if place == 0 else f"{JOBS} {place + 1}", "name": name,
            "hover": " / ".join(theme.plotly_text(one) for one in said if one),
            "start_at": row["start_at"], "end_at": row["end_at"], "place": place,
        })  # fmt: skip
    schema = {"lane": pl.String(), "name": pl.String(), "hover": pl.String(),
              "start_at": allocations.schema["start_at"], "end_at": allocations.schema["end_at"],
              "place": pl.Int64()}  # fmt: skip
    return pl.DataFrame(rows, schema=schema).sort("place", "start_at")


def _lines(node: Node) -> list[figures.Line]:
    """Return a line for each GPU, those that are flagged in front, with the band of its peers."""
    worse = set(flagged(node))
    own = node.gpus.unique("gpu_uuid", keep="last", maintain_order=True)
    ordered = sorted(own.iter_rows(named=True), key=lambda row: row["gpu_uuid"] not in worse)
    kept = ordered[: parts.LINES_MAX]
    names = {
        (row["gpu_uuid"], ""): places.gpu_name(row["gpu_index"], row["gpu_uuid"])
        for row in reversed(kept)
    }
    others = len(kept) - sum(row["gpu_uuid"] in worse for row in kept)
    group = f"the other {others}" if others < len(kept) else "its GPUs"
    series = node.series.with_columns(gpu_instance=pl.lit(""))
    if series.select("gpu_uuid", "at").is_duplicated().any():  # instances: of the device the most
        series = series.group_by("gpu_uuid", "gpu_instance", "at").agg(pl.col(METRICS).max())
    found = []
    for (uuid, _), name in names.items():
        for line in parts.lines(series, {(uuid, ""): name}, METRICS):
            is_worse = uuid in worse
            colour = theme.FLAGGED_COLOUR if is_worse else theme.OTHERS_COLOUR
            found.append(replace(line, colour=colour, group=None if is_worse else group))
    if found:
        of_peers = node_axis.peers(node.scope, node.read, METRICS)
        found[0] = replace(found[0], bands=spread.bands(of_peers, METRICS))
    return found


def _grouped(bins: pl.DataFrame, ledger: pl.DataFrame) -> pl.DataFrame:
    """Return the ledger's groups in each bin, in the order of stacks."""
    known = ledger_groups.groups()
    of = ledger_groups.of_categories(ledger, known)
    looks = known.unique("ledger_group").select("label", "colour", category="ledger_group")
    rank = pl.col("category").map_elements(theme.rank, return_dtype=pl.Int64)
    return (
        ledger_groups.over_time(bins, of)
        .filter(pl.col("gpu_ms") > 0)
        .join(looks, on="category", how="left")
        .sort("bucket_at", rank)
    )
