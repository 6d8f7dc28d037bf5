"""Parts of the Fleet page: the choice of colour and rack, cells, rows over time, and its tables."""

from collections.abc import Mapping
from typing import Any

import polars as pl
import streamlit as st

from goodput_app.dashboard import theme, time_zone
from goodput_app.dashboard.components import charts, places, scope_bar, tables
from goodput_app.dashboard.components import telemetry_parts as parts
from goodput_app.dashboard.components.rows import name_links
from goodput_app.dashboard.data import fleet, ledger_groups, metrics
from goodput_app.dashboard.data.fleet import Level
from goodput_app.dashboard.figures.fleet import cell_colours, rack_grid, rows_over_time
from goodput_app.dashboard.figures.fleet.cell_colours import Metric
from goodput_app.dashboard.scope import View
from goodput_app.dashboard.table_columns import headers
from goodput_app.text import units

CELLS_MAX = 1_500
HOUR_MS = 3_600_000
RACK_UNKNOWN = "Rack unknown"
SHOWN = {
    "sm_active_ratio": Metric("SM active", "%", 100, is_share=True),
    "engine_active_ratio": Metric("Engine active", "%", 100, is_share=True),
    "gpu_busy_ratio": Metric("GPU utilisation", "%", 100, is_share=True),
    "tensor_active_ratio": Metric("Tensor active", "%", 100, is_share=True),
    "dram_active_ratio": Metric("DRAM active", "%", 100, is_share=True),
    "nvlink_rx_bytes_per_s": Metric("NVLink received", "GB/s", 1e-9),
    "pcie_rx_bytes_per_s": Metric("PCIe received", "GB/s", 1e-9),
    "power_w": Metric("Power", "W"),
    "gpu_temperature_c": Metric("Temperature", "°C"),
    "throttled_ratio": Metric("Throttled", "%", 100, is_share=True),
    "memory_used_bytes": Metric("Memory in use", "GiB", 1 / 2**30),
    "errors": Metric("Health", "incidents"),
}
SORTS = {
    "waste": "Waste",
    "temperature": "Temperature",
    "health": "Health",
    "deviation": "Deviation",
}
SORTED_BY = {
    "waste": "wasted_ms",
    "temperature": "gpu_temperature_c",
    "health": "errors",
    "deviation": "deviation",
}
VALUES = {
    "°C": "its hottest GPU",
    "incidents": "incidents of hardware or driver that began; 0: read, and none reported;",
}
CATEGORY = "category"
CHOSEN = ("show", "sort", "rack")
THINGS: dict[Level, str] = {"gpu": "GPU", "node": "node", "rack": "rack"}


def rack_name(rack: str | None, cluster: str, *, is_alone: bool) -> str:
    """Return what a rack is called; of several clusters with the cluster."""
    name = RACK_UNKNOWN if rack is None else rack
    return name if is_alone else f"{name} ({cluster})"


def choose(states: pl.DataFrame) -> tuple[str | None, str | None, pl.DataFrame]:
    """Let people choose metric, order and rack; return metric, order and the rack's GPUs."""
    is_alone = states["cluster"].n_unique() == 1
    racks = states.unique("rack_key", keep="first", maintain_order=True)
    names = {
        row["rack_key"]: theme.printable(rack_name(row["rack"], row["cluster"], is_alone=is_alone))
        for row in racks.iter_rows(named=True)
    }
    left, middle, right, _ = st.columns([1, 1, 1, 2])
    with left:
        options = {name: metric.name for name, metric in SHOWN.items()}
        scope_bar.choice("show", "Colour by", {CATEGORY: "Category"} | options, none="Group")
    with middle:
        scope_bar.choice("sort", "Order of rows over time", SORTS, none="Rack")
    with right:
        scope_bar.choice("rack", "Rack", names)
    show, sort, rack = (st.query_params.get(name) for name in CHOSEN)
    of_it = states if not rack else states.filter(pl.col("rack_key") == rack)
    is_known = show in SHOWN or show == CATEGORY
    return show if is_known else None, sort if sort in SORTS else None, of_it


def grouped(rows: pl.DataFrame, ledger: pl.DataFrame) -> pl.DataFrame:
    """Return rows with a group of the ledger in place of `category`, `label` and `colour`.

    What is not classified keeps its category: of a GPU, steps that are not saved yet are not what
    missing readings are.
    ledger: marts.ledger_by_category
    """
    known = ledger_groups.groups()
    of = ledger_groups.of_categories(ledger, known)
    of = {category: group for category, group in of.items() if group != "unclassified"}
    looks = known.unique("ledger_group").select(
        "ledger_group", group_label="label", group_colour="colour"
    )
    named = rows.with_columns(
        ledger_group=pl.col("category").replace_strict(of, default=None, return_dtype=pl.String)
    ).join(looks, on="ledger_group", how="left", maintain_order="left")
    return named.with_columns(
        pl.coalesce("ledger_group", "category").alias("category"),
        pl.coalesce("group_label", "label").alias("label"),
        pl.coalesce("group_colour", "colour").alias("colour"),
    ).drop("ledger_group", "group_label", "group_colour")


def cells(states: pl.DataFrame, show: str | None) -> tuple[pl.DataFrame, bool]:
    """Return the cells of the rack grid and whether they are nodes: GPUs are too many then.

    Of a node's GPUs the cell has the category of most, their mean, or the hottest.
    """
    is_alone = states["cluster"].n_unique() == 1
    are_nodes = states.height > CELLS_MAX
    rows = states.with_columns(value=pl.col(show) if show in SHOWN else pl.lit(None, pl.Float64))
    if are_nodes:
        rows = _of_nodes(rows, show).head(CELLS_MAX)
    metric = SHOWN.get(show or "")
    found = [
        {
            "block": rack_name(row["rack"], row["cluster"], is_alone=is_alone),
            "line": row["rack_key"] if are_nodes else row["node_key"],
            "id": f"node:{row['node_key']}" if are_nodes else f"gpu:{row['gpu_uuid']}",
            "hover": _hover(row, metric, is_node=are_nodes),
            **{name: row[name] for name in ("events", "category", "label", "colour", "value")},
        }
        for row in rows.iter_rows(named=True)
    ]
    kinds = {"events": pl.Int64(), "value": pl.Float64()}
    names = ("block", "line", "id", "hover", "events", "category", "label", "colour", "value")
    schema = {name: kinds.get(name, pl.String()) for name in names}
    return pl.DataFrame(found, schema=schema), are_nodes


def _sum_of(values: pl.Expr) -> pl.Expr:
    return pl.when(values.count() > 0).then(values.sum())


def _of_nodes(rows: pl.DataFrame, show: str | None) -> pl.DataFrame:
    """Return a row for each node in place of its GPUs."""
    by = ("cluster", "rack", "rack_key", "node", "node_key")
    value = pl.col("value")
    most = (
        rows.group_by(*by, "category", "label", "colour", maintain_order=True)
        .len()
        .sort("len", descending=True, maintain_order=True)
        .unique(by, keep="first", maintain_order=True)
    )
    sums = rows.group_by(by, maintain_order=True).agg(
        pl.col("events").sum(),
        pl.len().alias("gpus"),
        value={"gpu_temperature_c": value.max(), "errors": _sum_of(value)}.get(
            show or "", value.mean()
        ),
    )
    return sums.join(
        most.select("node_key", "category", "label", "colour"),
        on="node_key",
        maintain_order="left",
    )


def _hover(row: Mapping[str, Any], metric: Metric | None, *, is_node: bool) -> str:
    node = theme.plotly_text(row["node"])
    name = node if is_node else f"{node}, {places.gpu_name(row['gpu_index'], row['gpu_uuid'])}"
    lines = [f"<b>{name}</b>", theme.plotly_text(row["label"] or cell_colours.NO_DATA)]
    if metric is not None:
        value = row["value"]
        shown = "not measured" if value is None else f"{value * metric.scale:,.0f} {metric.unit}"
        lines.append(f"{metric.name}: {shown}")
    if not is_node and row["run_id"] is not None:
        run = " / ".join(
            theme.plotly_text(row[name]) for name in ("job_name", "run_id", "team") if row[name]
        )
        more = f" and {row['runs'] - 1} more" if row["runs"] > 1 else ""
        lines.append(f"Run {run}{more}")
    if row["events"]:
        lines.append(units.count(row["events"], "event"))
    return "<br>".join(lines)


def grid(states: pl.DataFrame, show: str | None, marks: pl.DataFrame) -> None:
    """Draw the rack grid; a cell opens its GPU, or its node. marks: `fleet_now.marks`."""
    found, are_nodes = cells(states, show)
    figure = rack_grid.rack_grid(found, SHOWN.get(show or ""), marks, are_nodes=are_nodes)
    shown = found.drop("id", "hover", "colour", "category")
    clicked = charts.pick(figure, shown, "rack-grid", "A cell for each GPU in its rack")
    what = "a node: the category of most of its GPUs" if are_nodes else "a GPU"
    moments = states["at"].unique().to_list()
    when = f"at {time_zone.moment(moments[0])}"
    if len(moments) > 1:
        when = "at the end of the data of its cluster"
    st.caption(
        f"Each cell: {what}, {when}. "
        "Mark: an open page or ticket of the node. Hollow: not available. Click a cell to open it."
    )
    _open(clicked, states)


def rows_of(
    states: pl.DataFrame, sort: str | None, ranked: pl.DataFrame, most: int = fleet.ROWS_MAX
) -> pl.DataFrame:
    """Return the rows over time, as fine as can be seen, in the order asked for.

    ranked: data.fleet.wasted or deviations of this level, where that is the order
    """
    level = level_of(states, most)
    is_alone = states["cluster"].n_unique() == 1
    rows = states.group_by(pl.col(f"{level}_key").alias("key"), maintain_order=True).agg(
        pl.col("cluster", "rack", "node", "gpu_index", "gpu_uuid").first(),
        pl.col("gpu_temperature_c").max(),
        _sum_of(pl.col("errors")),
    )
    if sort in ("waste", "deviation"):
        rows = rows.join(ranked, on="key", how="left", maintain_order="left")
    if sort is not None:
        rows = rows.sort(SORTED_BY[sort], descending=True, nulls_last=True, maintain_order=True)
    found = []
    for row in rows.iter_rows(named=True):
        rack = rack_name(row["rack"], row["cluster"], is_alone=is_alone)
        names = {
            "gpu": f"{row['node']} {places.gpu_name(row['gpu_index'], row['gpu_uuid'])}",
            "node": row["node"],
            "rack": rack,
        }
        of_it = row["node"] if level == "gpu" else rack
        group = of_it if sort is None else names[level]  # else those of a group are apart
        found.append((row["key"], f"{level}:{row['key']}", names[level], group))
    schema = {name: pl.String() for name in ("key", "id", "name", "group")}
    return pl.DataFrame(found, schema=schema, orient="row")


def level_of(states: pl.DataFrame, most: int = fleet.ROWS_MAX) -> Level:
    """Return what the rows over time are: GPUs where `most` has all, else nodes or racks."""
    levels: tuple[Level, ...] = ("gpu", "node", "rack")
    few = (name for name in levels if states[f"{name}_key"].n_unique() <= most)
    finest: Level = next(few, "rack")
    # racks that are not known are one row: rather the first nodes
    is_known = states["rack"].null_count() < states.height
    return finest if finest != "rack" or is_known else "node"


def over_time(
    view: View,
    states: pl.DataFrame,
    show: str | None,
    sort: str | None,
    ledger: pl.DataFrame,
) -> None:
    """Draw rows over time and the allocations below, on one axis.

    ledger: marts.ledger_by_category
    """
    metric = SHOWN.get(show or "")
    most = fleet.LANES_MAX if metric is None else fleet.ROWS_MAX
    level = level_of(states, most)
    from_ms, to_ms = metrics.bounds(view.scope)
    if sort is None and metric is None and states[f"{level}_key"].n_unique() > most:
        sort = "waste"  # those that have a lane of their own
    ranked = pl.DataFrame()
    if sort == "waste":
        ranked = fleet.wasted(view.scope, level)
    elif sort == "deviation":
        ranked = fleet.deviations(view.scope, level, show)
    every = rows_of(states, sort, ranked, most)
    if metric is None:
        rows = lanes_of(every)
        bin_ms = _bin_ms(states, rows.height, to_ms - from_ms)
        keys = [key for key in rows["key"].to_list() if key != fleet.OTHERS]
        others = every["key"].to_list()[len(keys) :]
        bins = fleet.categories(view.scope, level, keys, bin_ms, others)
        bins = _summed(grouped(bins, ledger)) if show is None else bins
    else:
        rows = every.head(most)
        gpus = rows.height if level == "gpu" else None
        read = metrics.resolution_of(view.scope, gpus, fleet.BINS_MAX)
        bin_ms = read.bin_ms
        bins = fleet.metric(view.scope, level, rows["key"].to_list(), str(show), read)
        if bins["value"].null_count() == bins.height:
            st.info(
                f"No source measured {metric.name} in this time range. Choose another colour.",
                icon=":material/help:",
            )
    is_part = bool(st.query_params.get("rack"))
    nodes = states["node_key"].unique(maintain_order=True).to_list() if is_part else None
    bars = fleet.allocations(view.scope, nodes)
    of_rows = states.select("gpu_uuid", key=f"{level}_key")
    events = metrics.errors(view.scope)
    marks = parts.marks(events.join(of_rows, on="gpu_uuid"), pl.col("key"))
    figure = rows_over_time.over_time(rows, bins, bars, marks, metric, bin_ms, view.window)
    names = rows.select("key", "name")
    shown = bins.join(names, on="key", how="left", maintain_order="left")
    drawn = shown.select("name", *(c for c in bins.columns if c not in ("key", "colour")))
    clicked = charts.pick(figure, drawn, "fleet-over-time", "Rows over time, and allocations")
    st.caption(_bins_caption(THINGS[level], rows.height, every.height, bars, bin_ms, metric))
    _open(clicked, states)


def lanes_of(every: pl.DataFrame) -> pl.DataFrame:
    """Return at most LANES_MAX rows, the last one of all others. every: `rows_of`."""
    if every.height <= fleet.LANES_MAX:
        return every
    name = f"{every.height - fleet.LANES_MAX + 1:,} others"
    others = pl.DataFrame({"key": fleet.OTHERS, "id": "", "name": name, "group": name})
    return pl.concat([every.head(fleet.LANES_MAX - 1), others])


def _summed(bins: pl.DataFrame) -> pl.DataFrame:
    """Return bins with one row for what has one name."""
    by = ("key", "at", "category", "label", "colour")
    return bins.group_by(by, maintain_order=True).agg(pl.col("gpu_ms").sum())


def _bin_ms(states: pl.DataFrame, rows: int, window_ms: int) -> int:
    """Return the bins of categories over time: of a large fleet hours, for which it has sums."""
    most = min(fleet.BINS_MAX, fleet.CELLS_MAX // max(1, rows))
    bin_ms = scope_bar.bucket_ms(window_ms, most)
    is_large = states["gpu_uuid"].n_unique() * window_ms > fleet.SEGMENTS_GPU_HOURS_MAX * HOUR_MS
    return max(bin_ms, HOUR_MS) if is_large else bin_ms


def _bins_caption(
    thing: str, rows: int, of_rows: int, bars: pl.DataFrame, bin_ms: int, metric: Metric | None
) -> str:
    text = f"Each row: a {thing}"
    if rows < of_rows:
        named = f"the first {rows - 1} and the sum of the others" if metric is None else f"{rows}"
        text += f", {named} of {of_rows:,}; choose a rack or filter to see more"
    length = units.duration(bin_ms / 1000)
    if metric is None:
        text += f". Each bar: shares of its GPU time in {length}; all bars are the ledger."
    else:
        value = VALUES.get(metric.unit, "the mean of its GPUs")
        text += f". Each cell: {value} in {length}; grey: no data."
    if not bars.is_empty() and bars["runs"][0] > (drawn := bars["run_key"].n_unique()):
        text += f" Allocations of {drawn} of {bars['runs'][0]:,} runs."
    return f"{text} Click a triangle to open the row, a bar of an allocation to open its run."


def _open(clicked: str | None, states: pl.DataFrame) -> None:
    """Open the page of what was clicked; a rack stays on this one.

    `st.switch_page` leaves this page with the new parameters in the browser's history: they keep
    what is chosen here, so that Back shows it again.
    """
    kind, _, key = (clicked or "").partition(":")
    chosen = {name: st.query_params.get(name) for name in CHOSEN}
    here: dict[str, Any] = {**scope_bar.carried(team=None), **chosen}
    if kind == "gpu":
        _switch(name_links.GPU_PAGE, {**here, "gpu": key, "node": None, "run": None})
    if kind == "run":
        _switch(name_links.RUN_PAGE, {**here, "run": key, "node": None})
    if kind == "node":
        of_it = states.filter(pl.col("node_key") == key).row(0, named=True)
        place = {"node": of_it["node"], "cluster": of_it["cluster"]}
        _switch(name_links.NODE_PAGE, {**here, **place, "run": None})
    if kind == "rack" and st.query_params.get("rack") != key:
        scope_bar.go({"rack": key})
        st.rerun()


def _switch(page: str, params: Mapping[str, Any]) -> None:
    st.switch_page(page, query_params={name: value for name, value in params.items() if value})


def racks_table(racks: pl.DataFrame) -> None:
    """Draw the table of racks, of which a click on one filters this page to it."""
    named = racks.with_columns(pl.col("rack").fill_null(RACK_UNKNOWN))
    opens = [{"rack": key} for key in racks["rack_key"].to_list()]
    tables.pick(named, headers("fleet.racks"), "of_rack", racks["rack_key"], opens=opens)
    st.caption("Click a rack to see it alone.")
