"""Parts of the page of nodes: the list, and of one node its GPUs on one time axis."""

from collections.abc import Sequence
from dataclasses import replace

import polars as pl
import streamlit as st

from goodput_app.dashboard import theme, time_zone
from goodput_app.dashboard.components import charts, flag_parts, places, tables
from goodput_app.dashboard.components import telemetry_parts as parts
from goodput_app.dashboard.components.fleet import host_parts
from goodput_app.dashboard.components.fleet.node_axis import Node, flagged
from goodput_app.dashboard.components.rows import changes
from goodput_app.dashboard.data import ledger_groups, metrics, node_axis
from goodput_app.dashboard.figures import bars, power
from goodput_app.dashboard.figures import telemetry as figures
from goodput_app.dashboard.scope import View
from goodput_app.dashboard.table_columns import headers
from goodput_app.text import units
from goodput_queries.scope import Scope

POINTS_MAX = 240
NODES = headers("node.nodes")
GPUS = headers("node.gpus")
SPARK_BINS = 48
BUSY_RATIO = 0.5  # an idle GPU lowers its clock at any temperature
NO_READING = -0.15  # in a sparkline, which knows no holes: below all values
ACTIVITY = pl.coalesce("sm_active_ratio", "engine_active_ratio", "gpu_busy_ratio")


def all_nodes(frame: pl.DataFrame, outages: pl.DataFrame, view: View) -> None:
    """Draw the table of nodes, of which a row opens the node: out of service, flagged, the others.

    frame: marts.nodes; outages: marts.node_outages
    """
    since = pl.col("start_at").map_elements(
        lambda at: time_zone.moment_of(at, view.end), return_dtype=pl.String
    )
    out = outages.filter(pl.col("end_at").is_null()).select(
        "cluster", "node", state=pl.format("{} since {}", "state", since)
    )
    frame = frame.join(out, on=["cluster", "node"], how="left", maintain_order="left")
    frame = flag_parts.flagged_first(frame, "node")
    frame = frame.sort(pl.col("state").is_null(), maintain_order=True)
    frame = frame.join(
        useful_by_hour(node_axis.useful_hours(view.scope)), on=["cluster", "node"], how="left"
    )
    frame, columns = changes.of_waste(
        frame, NODES, view.scope, ("cluster", "node"), instead=("rack", "events", "wasted_ms")
    )
    rows = frame.select("cluster", "node").to_dicts()
    wide = {
        "state": st.column_config.TextColumn(NODES["state"], width=165),
        "useful": st.column_config.LineChartColumn(
            NODES["useful"], y_min=NO_READING, y_max=1, width=130,
            help="Share of its GPU time in each hour; below zero: not in the ledger",
        ),
    }  # fmt: skip
    tables.pick(frame, columns, "of_node", frame["node"], rows=16, opens=rows, wide=wide)
    st.caption(
        "Nodes out of service first, then those with an open finding, then by wasted cost. "
        "Select a row to open the node."
    )


def useful_by_hour(hours: pl.DataFrame) -> pl.DataFrame:
    """Return `cluster`, `node` and `useful`: the share of each hour, NO_READING without one.

    hours: `node_axis.useful_hours`
    """
    places = hours.select("cluster", "node").unique()
    grid = places.join(hours.select("hour_ms").unique(), how="cross")
    return (
        grid.join(hours, on=["cluster", "node", "hour_ms"], how="left")
        .sort("hour_ms")
        .group_by("cluster", "node")
        .agg(useful=pl.col("useful_ratio").fill_null(NO_READING))
    )


def facts(gpus: pl.DataFrame) -> str:
    """Return how many GPUs of which model a node has, and where it is. gpus: marts.gpus."""
    models = ", ".join(sorted({model for model in gpus["gpu_model"] if model}))
    found = [
        units.count(gpus["gpu_uuid"].n_unique(), "GPU"),
        models or "model not known",
        places.rack_name(gpus["rack"][0]) or "rack unknown",
        gpus["cluster"][0],
    ]
    return " / ".join(found)


def ledger_bar(ledger: pl.DataFrame, of: str = "node") -> None:
    """Draw a ledger as one bar of groups. ledger: marts.ledger_by_category; of: a node or GPU."""
    groups = ledger_groups.grouped(ledger, ledger_groups.groups())
    drawn = [bars.Part(*row) for row in groups.select("label", "gpu_ms", "colour").iter_rows()]
    st.html(theme.look("bars") + bars.stacked(drawn, f"Ledger of the {of}"))
    st.caption(f"Ledger of {units.gpu_time(int(ledger['gpu_ms'].sum()))} in this time range")


def gpus_of_node(node: Node, categories: pl.DataFrame, view: View) -> None:
    """Draw the GPUs of a node as rows, the flagged ones first; each at the end of the range."""
    series, allocations = node.series, node.allocations
    at_end = (
        series.sort("at")
        .group_by("gpu_uuid", "gpu_instance")
        .agg(
            power_w=pl.col("power_w_last").drop_nulls().last(),
            gpu_temperature_c=pl.col("gpu_temperature_c_last").drop_nulls().last(),
            memory_used_gib=pl.col("memory_used_bytes_last").drop_nulls().last() / 2**30,
        )
        .group_by("gpu_uuid")
        .agg(
            pl.col("power_w", "gpu_temperature_c").max(),  # instances repeat the device's
            pl.when(pl.col("memory_used_gib").count() > 0).then(pl.col("memory_used_gib").sum()),
        )
    )
    # of a partitioned GPU those of its instances
    last = (
        categories.sort("end_at", "share_ratio")
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
    counted = node.events.group_by("gpu_uuid").agg(events=pl.len())
    rows = node.gpus.unique("gpu_uuid", keep="last", maintain_order=True)
    for more in (at_end, last, named, counted, sparklines(series, view)):
        rows = rows.join(more, on="gpu_uuid", how="left", maintain_order="left")
    names = [places.gpu_name(*row) for row in rows.select("gpu_index", "gpu_uuid").iter_rows()]
    rows = rows.with_columns(
        pl.Series("gpu_name", names, dtype=pl.String),
        pl.col("events").fill_null(0),
        pl.col("memory_used_gib").round(1),
    ).sort(~pl.col("gpu_uuid").is_in(flagged(node)), maintain_order=True)
    line = st.column_config.LineChartColumn(
        GPUS["activity"],
        y_min=NO_READING,
        y_max=1,
        width=190,
        help="Of the time range; below zero: no readings",
    )
    places.pick(rows, GPUS, "of_gpu", ("gpu_uuid",), rows=16, wide={"activity": line})


def sparklines(series: pl.DataFrame, view: View) -> pl.DataFrame:
    """Return `gpu_uuid` and `activity`: its mean in each of SPARK_BINS bins, else NO_READING."""
    length_s = (view.end - view.start).total_seconds() / SPARK_BINS
    place = ((pl.col("at") - view.start).dt.total_seconds() / length_s).floor().cast(pl.Int64)
    binned = (
        series.with_columns(place=place.clip(0, SPARK_BINS - 1))
        .group_by("gpu_uuid", "place")
        .agg(activity=ACTIVITY.mean())
    )
    grid = (
        series.select("gpu_uuid")
        .unique()
        .join(pl.DataFrame({"place": range(SPARK_BINS)}, schema={"place": pl.Int64}), how="cross")
    )
    return (
        grid.join(binned, on=["gpu_uuid", "place"], how="left")
        .with_columns(pl.col("activity").fill_null(NO_READING))
        .sort("place")
        .group_by("gpu_uuid")
        .agg("activity")
    )


def series(scope: Scope, gpus: pl.DataFrame) -> tuple[pl.DataFrame, metrics.Resolution]:
    """Return the series of a node's GPUs and how they are binned."""
    found = gpus["gpu_uuid"].unique().sort().to_list()
    # a line for each GPU and metric: fewer points each
    read = metrics.resolution_of(scope, len(found), POINTS_MAX, can_ask_lake=True)
    return metrics.gpu_series(scope, found, read), read


def draw(view: View, node: Node, categories: pl.DataFrame, host_series: pl.DataFrame) -> None:
    """Draw a lane for each GPU with its category, and below all its metrics and the host's."""
    every, read = node.series, node.read
    names = _names(node.gpus, categories, every)
    lane_of = pl.concat_str(pl.col("gpu_uuid"), pl.col("gpu_instance"), separator="|")
    lanes_by_id = {f"{gpu}|{unit}": name for (gpu, unit), name in names.items()}
    of_categories = categories.with_columns(
        lane=lane_of.replace_strict(lanes_by_id, default=None, return_dtype=pl.String)
    ).drop_nulls("lane")
    first = {gpu: name for (gpu, _), name in reversed(list(names.items()))}
    of_gpu = pl.col("gpu_uuid").replace_strict(
        first, default=figures.EVENTS, return_dtype=pl.String
    )
    marks = pl.concat([parts.marks(node.events, of_gpu), host_parts.marks(node.links)])
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
        f"{read.name}. A lane is the GPU's ledger: the height is the share of each bin. A line "
        "breaks where samples are missing."
    )
    if len(read_names) > len(shown):
        text += f" Metrics of the first {len(shown)} of {len(read_names)} GPUs and instances."
    st.caption(text)
    busy = every.filter(ACTIVITY >= BUSY_RATIO).drop_nulls(["sm_clock_hz", "gpu_temperature_c"])
    busy = busy.with_columns(gpu=pl.col("gpu_uuid").replace(first)).sort("gpu", "at")
    if not busy.is_empty():
        clocks = busy.select("gpu", "at", "gpu_temperature_c", "sm_clock_hz")
        title = "SM clock by temperature, while the GPU is in use"
        charts.draw(power.clock_by_temperature(clocks), clocks, "node-clocks", title)


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
