"""Parts of the page of nodes: the list, and of one node its GPUs on one time axis."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

import polars as pl
import streamlit as st

from goodput_app.dashboard import theme, time_zone
from goodput_app.dashboard.components import places, tables
from goodput_app.dashboard.components import telemetry_parts as parts
from goodput_app.dashboard.components.fleet import host_parts
from goodput_app.dashboard.data import metrics
from goodput_app.dashboard.figures import telemetry as figures
from goodput_app.dashboard.scope import View
from goodput_app.dashboard.table_columns import headers
from goodput_queries.scope import Scope

POINTS_MAX = 240
NODES = headers("node.nodes")
NODES_HIDDEN = ("gpu_model", "read_gpus", "power_w", "thermal_s", "last_event_at", "useful_ms")
GPUS = headers("node.gpus")
GPUS_HIDDEN = ("gpu_model", "run_id", "gpu_uuid")


def all_nodes(frame: pl.DataFrame, outages: pl.DataFrame, end: datetime) -> None:
    """Draw the table of nodes, of which a row opens the node; those out of service come first.

    frame: marts.nodes; outages: marts.node_outages; end: of the time range
    """
    since = pl.col("start_at").map_elements(
        lambda at: time_zone.moment_of(at, end), return_dtype=pl.String
    )
    out = outages.filter(pl.col("end_at").is_null()).select(
        "cluster", "node", state=pl.format("{} since {}", "state", since)
    )
    frame = frame.join(out, on=["cluster", "node"], how="left", maintain_order="left")
    frame = frame.sort(pl.col("state").is_null(), maintain_order=True)
    rows = frame.select("cluster", "node").to_dicts()
    tables.pick(frame, NODES, "of_node", frame["node"], rows=16, opens=rows, hidden=NODES_HIDDEN)
    st.caption("Select a row to open the node.")


def links_to_gpus(gpus: pl.DataFrame) -> None:
    """Draw a link to each GPU of a node; gpus: marts.gpus."""
    with st.container(horizontal=True, gap="small"):
        for row in gpus.unique("gpu_uuid", keep="last", maintain_order=True).iter_rows(named=True):
            name = places.gpu_name(row["gpu_index"], row["gpu_uuid"])
            places.to_gpu(row["gpu_uuid"], name, verb="")


def gpus_of_node(
    gpus: pl.DataFrame,
    series: pl.DataFrame,
    categories: pl.DataFrame,
    allocations: pl.DataFrame,
    events: pl.DataFrame,
) -> None:
    """Draw the GPUs of a node as rows, each at the end of the time range."""
    activity = pl.coalesce("sm_active_ratio", "engine_active_ratio", "gpu_busy_ratio")
    at_end = (
        series.sort("at")
        .group_by("gpu_uuid", "gpu_instance")
        .agg(
            activity_ratio=activity.drop_nulls().last(),
            power_w=pl.col("power_w_last").drop_nulls().last(),
            gpu_temperature_c=pl.col("gpu_temperature_c_last").drop_nulls().last(),
            memory_used_gib=pl.col("memory_used_bytes_last").drop_nulls().last() / 2**30,
        )
        .group_by("gpu_uuid")
        .agg(
            pl.col("activity_ratio").mean(),
            pl.col("power_w", "gpu_temperature_c").max(),  # instances repeat the device's
            pl.when(pl.col("memory_used_gib").count() > 0).then(pl.col("memory_used_gib").sum()),
        )
    )
    # of a partitioned GPU those of its instances
    last = (
        categories.sort("end_at")
        .group_by("gpu_uuid", "gpu_instance")
        .agg(pl.col("label").last())
        .group_by("gpu_uuid")
        .agg(pl.col("label").unique().sort().str.join(", "))
    )
    # of the evidence, which may end before the time range does
    held = allocations.filter(pl.col("end_at") >= categories["end_at"].max()).group_by("gpu_uuid")
    named = held.agg(
        pl.col("run_key").first(),
        pl.col("run_id").unique().sort().str.join(", "),
        pl.coalesce("job_name", "run_id").alias("job_name").unique().sort().str.join(", "),
    )
    counted = events.group_by("gpu_uuid").agg(events=pl.len())
    rows = gpus.unique("gpu_uuid", keep="last", maintain_order=True)
    for more in (at_end, last, named, counted):
        rows = rows.join(more, on="gpu_uuid", how="left", maintain_order="left")
    rows = rows.with_columns(pl.col("events").fill_null(0), pl.col("memory_used_gib").round(1))
    places.pick(rows, GPUS, "of_gpu", ("gpu_uuid",), rows=16, hidden=GPUS_HIDDEN)


def series(scope: Scope, gpus: pl.DataFrame) -> tuple[pl.DataFrame, metrics.Resolution]:
    """Return the series of a node's GPUs and how they are binned."""
    found = gpus["gpu_uuid"].unique().sort().to_list()
    # a line for each GPU and metric: fewer points each
    read = metrics.resolution_of(scope, len(found), POINTS_MAX, can_ask_lake=True)
    return metrics.gpu_series(scope, found, read), read


def draw(
    view: View,
    gpus: pl.DataFrame,
    found: tuple[pl.DataFrame, metrics.Resolution],
    categories: pl.DataFrame,
    events: pl.DataFrame,
    host: tuple[pl.DataFrame, pl.DataFrame],
) -> None:
    """Draw a lane for each GPU with its category, and below their metrics and those of the host.

    host: its series and the events of its links
    """
    every, read = found
    names = _names(gpus, categories, every)
    lane_of = pl.concat_str(pl.col("gpu_uuid"), pl.col("gpu_instance"), separator="|")
    lanes_by_id = {f"{gpu}|{unit}": name for (gpu, unit), name in names.items()}
    of_categories = categories.with_columns(
        lane=lane_of.replace_strict(lanes_by_id, default=None, return_dtype=pl.String)
    ).drop_nulls("lane")
    first = {gpu: name for (gpu, _), name in reversed(list(names.items()))}
    of_gpu = pl.col("gpu_uuid").replace_strict(
        first, default=figures.EVENTS, return_dtype=pl.String
    )
    host_series, link_events = host
    marks = pl.concat([parts.marks(events, of_gpu), host_parts.marks(link_events)])
    is_unknown = figures.EVENTS in marks["lane"].to_list()
    reasons = parts.reasons(every, read.bin_ms)
    lanes = figures.Lanes(
        [
            *names.values(),
            *reasons["lane"].unique(maintain_order=True).to_list(),
            *([figures.EVENTS] if is_unknown else []),
        ],
        None, of_categories, reasons, None, marks,
    )  # fmt: skip
    read_names = {key: name for key, name in names.items() if key[1] != "rest"}
    shown = dict(list(read_names.items())[: parts.LINES_MAX])
    lines = [*parts.lines(every, shown, metrics.METRICS), *host_parts.lines(host_series)]
    parts.draw(view, lanes, lines, {}, parts.measured(every, has_extremes=False), "node-telemetry",
               "GPUs and host of the node: categories, metrics and events on one time axis",
               host_parts.panels(host_series))  # fmt: skip
    text = (
        f"{read.name}. A lane has the category with most time in each bin, its hover the ledger's "
        "time in each. A line breaks where samples are missing."
    )
    if len(read_names) > len(shown):
        text += f" Metrics of the first {len(shown)} of {len(read_names)} GPUs and instances."
    st.caption(text)


def _names(
    gpus: pl.DataFrame, categories: pl.DataFrame, series: pl.DataFrame
) -> dict[tuple[str, str], str]:
    """Return what each GPU and instance of a node is called, in order."""
    all_units = pl.concat(
        [frame.select("gpu_uuid", "gpu_instance") for frame in (categories, series)]
    ).unique()
    found: dict[tuple[str, str], str] = {}
    for row in gpus.unique("gpu_uuid", keep="last", maintain_order=True).iter_rows(named=True):
        uuid = row["gpu_uuid"]
        name = theme.plotly_text(places.gpu_name(row["gpu_index"], uuid))
        instances = all_units.filter(pl.col("gpu_uuid") == uuid)["gpu_instance"].sort().to_list()
        for instance in instances or [""]:
            of_it = f"{name} {theme.plotly_text(instance, 16)}" if instance else name
            found[uuid, instance] = of_it if of_it not in found.values() else f"{of_it} {uuid[-6:]}"
    return found


def scope_of(scope: Scope, node: str, clusters: Sequence[str]) -> Scope:
    """Return the scope of a node and all its GPUs, whoever held them."""
    cluster = scope.cluster or (clusters[0] if len(clusters) == 1 else None)
    return replace(scope, node=node, cluster=cluster, team=None, run=None)
