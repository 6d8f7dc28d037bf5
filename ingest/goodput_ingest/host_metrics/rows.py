"""Series of node_exporter into rows of nodes and of their network ports."""

from typing import Final

import polars as pl

from goodput_ingest.formats.parsed import INSTANT, Parsed, with_rows
from goodput_ingest.gpu_metrics import labels as gpu_labels
from goodput_ingest.host_metrics import catalogue
from goodput_ingest.source import Reject

TEXT_MAX_CHARS: Final = 64
WHOLE_MAX: Final = 2.0**63
REALS: Final = frozenset(
    {
        *("cpu_busy_s", "cpu_iowait_s", "cpu_steal_s", "cpu_total_s", "load1", "disk_busy_s"),
        "speed_bytes_per_s",
    }
)
OF_NODES: Final = (
    *("cpu_busy_s", "cpu_iowait_s", "cpu_steal_s", "cpu_total_s"),
    *catalogue.NODE.values(),
    *catalogue.DISKS.values(),
)
OF_LINKS: Final = tuple(
    dict.fromkeys([*catalogue.ETHERNET.values(), *catalogue.INFINIBAND.values()])
)
LINK: Final = ("kind", "device", "port")
NOWHERE: Final = (
    "the series of node_exporter do not say which node they are of: pass it, as in --node gpu-a01, "
    "or write `# scraped_at 2026-11-20T12:00:00Z http://gpu-a01:9100/metrics` before each scrape"
)
NO_LABEL: Final = (
    "a series of node_exporter has no device, or no known mode of its CPU; it was left out"
)
NO_READING: Final = (
    "a value of node_exporter is infinite, negative or over 2^63, and no reading of its metric; it "
    "was left out, with the sum of the node that it is a part of"
)


def host_rows(
    points: pl.DataFrame,
    series: pl.DataFrame,
    label_sets: pl.DataFrame,
    *,
    cluster: str | None = None,
    node: str | None = None,
) -> list[Parsed]:
    """Return rows of node_samples and link_samples; series of other metrics are left out.

    points: series (row of `series`), ts (naive UTC), value; in any order
    series: metric, labels (row of `label_sets`); label_sets: a column a label name of LABELS
    node: whose series they are where no label says

    A sum over cores or disks of which one part cannot be a reading (NaN, negative) is null.
    """
    named = _named(series, label_sets, node)
    columns = _columns(named)
    is_nowhere = columns["node"].is_null()
    rejects = [Reject(None, NOWHERE)] if is_nowhere.any() else []
    rejects += [Reject(None, NO_LABEL, f"{name} {label}") for name, label in _incomplete(named)]
    valued = (
        points.lazy()
        .join(columns.filter(~is_nowhere).lazy(), on="series")
        .with_columns(_value().alias("value"), raw="value")
        .collect()
    )
    rejects += [Reject(None, NO_READING, text) for text in _no_readings(valued, series)]
    read = (
        valued.lazy()
        # a series that came twice, by two jobs of one server, is one
        .group_by("node", *LINK, "ts", "column", "part")
        .agg(pl.col("value").max(), pl.col("value").is_null().any().alias("is_broken"))
        .group_by("node", *LINK, "ts", "column")
        .agg("value", pl.col("is_broken").any(), parts=pl.len())
        # a scrape without one of the cores is no lower sum
        .with_columns(
            is_whole=pl.col("parts") == pl.col("parts").max().over("node", *LINK, "column")
        )
        .with_columns(
            value=pl.when(pl.col("is_whole") & ~pl.col("is_broken")).then(
                pl.col("value").list.sum()
            )
        )
        .collect()
    )
    is_of_link = pl.col("kind") != ""
    found = [
        Parsed("node_samples", _wide(read.filter(~is_of_link), ("node",), OF_NODES, cluster)),
        Parsed("link_samples", _wide(read.filter(is_of_link), ("node", *LINK), OF_LINKS, cluster)),
    ]
    return with_rows(found, rejects)


def _named(series: pl.DataFrame, label_sets: pl.DataFrame, node: str | None) -> pl.DataFrame:
    """Return series, metric, node, device, port, mode and cpu of the series that are read."""
    of_sets = pl.DataFrame(
        [
            gpu_labels.normalise(label_sets, node=node)["node"],
            *(_text(label_sets, name) for name in ("device", "port", "mode", "cpu", "instance")),
        ]
    ).with_row_index("labels")
    named = (
        series.with_row_index("series")
        .filter(pl.col("metric").is_in(catalogue.NAMES))
        .join(of_sets, on="labels", maintain_order="left")
    )
    # a host knows its own name, which a scheduler writes; Prometheus may know an address
    known = (
        named.filter(pl.col("metric") == catalogue.IDENTITY)
        .group_by("instance")
        .agg(host=pl.col("node").first(), hosts=pl.col("node").n_unique())
        .filter(pl.col("hosts") == 1)
    )
    address = pl.col("instance").str.replace(gpu_labels.PORT, "").str.strip_chars("[]")
    is_address = (pl.col("node") == address).fill_null(value=True)
    return named.join(
        known, on="instance", how="left", nulls_equal=True, maintain_order="left"
    ).with_columns(node=pl.when(is_address).then(pl.coalesce("host", "node")).otherwise("node"))


def _incomplete(named: pl.DataFrame) -> list[tuple[str, str]]:
    """Return metric and mode ('' for no device) of series without labels that distinguish them."""
    metric, mode = pl.col("metric"), pl.col("mode")
    is_cpu = (metric == catalogue.CPU) & ~mode.is_in(catalogue.CPU_MODES)
    is_of_device = metric.is_in([*catalogue.DISKS, *catalogue.ETHERNET, *catalogue.INFINIBAND])
    is_device = is_of_device & (pl.col("device") == "")
    return named.filter(is_cpu | is_device).select("metric", "mode").unique().sort("metric").rows()


def _no_readings(valued: pl.DataFrame, series: pl.DataFrame) -> list[str]:
    """Return a sample and how many there are, for each metric with values that are no reading.

    NaN is none: an exporter says with it that it has no value; so is a speed of -1.
    """
    is_named = pl.col("value").is_null() & ~pl.col("raw").is_nan()
    is_unknown = (pl.col("column") == "speed_bytes_per_s") & (pl.col("raw") <= 0)
    bad = valued.filter(is_named & ~is_unknown)
    if bad.is_empty():
        return []
    metric = series["metric"].gather(bad["series"])
    found = bad.with_columns(metric).unique(["series", "ts"]).group_by("metric")
    counted = found.agg(pl.col("raw").first(), pl.len()).sort("metric")
    return [f"{name} {raw} ({count} values)" for name, raw, count in counted.iter_rows()]


def _text(label_sets: pl.DataFrame, name: str) -> pl.Series:
    """Return the values of a label, fit to be shown and stored; '' where it is absent."""
    if name not in label_sets.columns:
        return pl.Series(name, [None] * label_sets.height, dtype=pl.String).fill_null("")
    texts = label_sets[name].fill_null("").str.slice(0, TEXT_MAX_CHARS)
    return texts.str.replace_all(gpu_labels.CONTROL, "\ufffd")


def _columns(named: pl.DataFrame) -> pl.DataFrame:
    """Return which column each series is a part of: series, node, kind, device, port, column, part.

    kind: '' for the node itself; part: what is summed up to one value of the column
    """
    metric, mode = pl.col("metric"), pl.col("mode")
    is_cpu = (metric == catalogue.CPU) & mode.is_in(catalogue.CPU_MODES)
    is_disk = ~pl.col("device").str.contains(catalogue.WITHIN_DISKS)
    is_interface = ~pl.col("device").str.contains(catalogue.VIRTUAL_INTERFACE)
    core = pl.format("{}/{}", "cpu", mode)
    nothing = pl.lit("")
    parts = [
        _part(named, is_cpu, "cpu_total_s", nothing, core),
        _part(named, is_cpu & ~mode.is_in(catalogue.NOT_BUSY), "cpu_busy_s", nothing, core),
        _part(named, is_cpu & (mode == "iowait"), "cpu_iowait_s", nothing, core),
        _part(named, is_cpu & (mode == "steal"), "cpu_steal_s", nothing, core),
        _part(named, metric.is_in(catalogue.NODE), catalogue.NODE, nothing, nothing),
        _part(named, metric.is_in(catalogue.DISKS) & is_disk, catalogue.DISKS, nothing,
              pl.col("device")),
        _part(named, metric.is_in(catalogue.ETHERNET) & is_interface, catalogue.ETHERNET,
              pl.lit("ethernet"), nothing),
        _part(named, metric.is_in(catalogue.INFINIBAND), catalogue.INFINIBAND,
              pl.lit("infiniband"), nothing),
    ]  # fmt: skip
    return pl.concat(parts)


def _part(
    named: pl.DataFrame, of: pl.Expr, column: str | dict[str, str], kind: pl.Expr, part: pl.Expr
) -> pl.DataFrame:
    of_link = kind != ""
    name = (
        pl.lit(column)
        if isinstance(column, str)
        else pl.col("metric").replace_strict(column, default=None, return_dtype=pl.String)
    )
    return named.filter(of).select(
        "series",
        "node",
        kind.alias("kind"),
        pl.when(of_link).then("device").otherwise(pl.lit("")).alias("device"),
        pl.when(of_link).then("port").otherwise(pl.lit("")).alias("port"),
        name.alias("column"),
        part.alias("part"),
    )


def _value() -> pl.Expr:
    """Return a value in the unit of its column; null where it cannot be a reading."""
    value, is_state = pl.col("value"), pl.col("column") == "is_up"
    active = pl.when(pl.col("kind") == "infiniband").then(catalogue.INFINIBAND_ACTIVE).otherwise(1)
    is_reading = value.is_between(0, WHOLE_MAX, closed="left")  # NaN is not
    # an interface without a known speed says 0, or -1 Mbit/s
    is_unknown = (pl.col("column") == "speed_bytes_per_s") & (value == 0)
    return (
        pl.when(is_reading & is_state)
        .then((value == active).cast(pl.Float64))
        .when(is_reading & ~is_unknown)
        .then(value)
    )


def _wide(
    read: pl.DataFrame, key: tuple[str, ...], columns: tuple[str, ...], cluster: str | None
) -> pl.DataFrame:
    """Return a row for each node (and port) and moment, with all columns."""
    value = pl.col("value")
    found = (
        read.lazy()
        .group_by(*key, "ts")
        .agg(
            value.filter(pl.col("column") == name).first().cast(_kind(name)).alias(name)
            for name in columns
        )
        .filter(pl.any_horizontal(pl.col(columns).is_not_null()))
        .sort(*key, "ts")
        .collect()
    )
    return found.with_columns(
        pl.col("ts").cast(INSTANT), pl.lit(cluster, dtype=pl.String).alias("cluster")
    )


def _kind(column: str) -> type[pl.DataType]:
    if column == "is_up":
        return pl.Boolean
    return pl.Float64 if column in REALS else pl.Int64
