"""Metrics over time: series of GPUs, the band of their peers, and what happened on the same axis.

A series is binned in SQL: raw samples for short windows, the ten-minute roll-up for long ones. A
bin without a sample has no row, and `with_holes` breaks the line there.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from goodput_app.access import rows
from goodput_app.dashboard import theme
from goodput_app.dashboard.data import lake, marts
from goodput_queries.scope import Scope

POINTS_MAX = 480  # a trace; a page has up to 30 of them, and stays below 1 MB
RAW_GPU_HOURS_MAX = 200  # of more, the roll-up is read
RAW_MS_MAX = 8 * 3_600_000  # of longer windows too: samples of all GPUs in it are looked through
ROLLED_UP_MS = 600_000
HOLE_INTERVALS = 2.5  # as in the ledger (threshold sample_reach)
GAP_MIN_S = 60
ERRORS_MAX = 10_000
SHARES_MAX = 96  # bars that can be told apart
PEERS_MAX = 64
RATES = (
    "gpu_busy_ratio",
    "engine_active_ratio",
    "sm_active_ratio",
    "tensor_active_ratio",
    "dram_active_ratio",
    "sm_occupancy_ratio",
    "fp64_active_ratio",
    "fp32_active_ratio",
    "fp16_active_ratio",
    "nvlink_tx_bytes_per_s",
    "nvlink_rx_bytes_per_s",
    "pcie_tx_bytes_per_s",
    "pcie_rx_bytes_per_s",
)
STATES = (
    "power_w",
    "sm_clock_hz",
    "memory_clock_hz",
    "gpu_temperature_c",
    "memory_temperature_c",
    "memory_used_bytes",
)
METRICS = (*RATES, *STATES)
LAST = ("power_w", "gpu_temperature_c", "memory_used_bytes")  # whose last reading is shown, too
REASONS = {
    "power_cap": 4,
    "hw_slowdown": 8,
    "sw_thermal": 32,
    "hw_thermal": 64,
    "power_brake": 128,
}
BINS_MS = tuple(
    1000 * seconds
    for seconds in (
        *(1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800),
        *(3600, 7200, 10_800, 21_600, 43_200, 86_400),
    )
)


@dataclass(frozen=True)
class Resolution:
    """How a series is binned: the bin, and whether it comes from raw samples, and from a lake."""

    bin_ms: int
    is_raw: bool
    is_of_lake: bool = False

    @property
    def name(self) -> str:
        """Return it in words."""
        of = "samples" if self.is_raw else "the 10 min roll-up"
        of += ", read from the lake" if self.is_of_lake else ""
        unit, length = ("min", 60_000) if self.bin_ms >= 60_000 else ("s", 1000)
        return f"{self.bin_ms // length} {unit} means of {of}"


def resolution(window_ms: int, gpus: int | None, points: int = POINTS_MAX) -> Resolution:
    """Return the finest bin of which a trace has at most so many points; gpus: None: very many.

    Of the roll-up a bin is whole rows of it: of 15 minutes every other one would have half as many.
    """
    is_raw = (
        gpus is not None
        and window_ms <= RAW_MS_MAX
        and gpus * window_ms / 3_600_000 <= RAW_GPU_HOURS_MAX
    )
    unit_ms = 1 if is_raw else ROLLED_UP_MS
    bins = (b for b in BINS_MS if b % unit_ms == 0 and window_ms <= b * points)
    days = -(-window_ms // (points * BINS_MS[-1]))
    return Resolution(next(bins, days * BINS_MS[-1]), is_raw)


def resolution_of(
    scope: Scope, gpus: int | None, points: int = POINTS_MAX, *, can_ask_lake: bool = False
) -> Resolution:
    """Return the resolution of a scope's window: of what is in the lake alone the roll-up.

    can_ask_lake: who sees all teams gets samples of it from the lake.
    """
    from_ms, to_ms = bounds(scope)
    read = resolution(to_ms - from_ms, gpus, points)
    if not read.is_raw or not lake.is_in_lake(from_ms):
        return read
    if can_ask_lake and rows.sees_all(scope):
        return replace(read, is_of_lake=True)
    return resolution(to_ms - from_ms, None, points)


def bin_of_shares(scope: Scope) -> int:
    """Return the length in ms of the bins of a stack of shares over the scope's window."""
    from_ms, to_ms = bounds(scope)
    return next((b for b in BINS_MS if to_ms - from_ms <= b * SHARES_MAX), BINS_MS[-1])


def bounds(scope: Scope) -> tuple[int, int]:
    """Return from when to when the scope of a view goes, in epoch ms; raises for one without."""
    if scope.from_ms is None or scope.to_ms is None:
        raise ValueError("series are of a time range")
    return scope.from_ms, scope.to_ms


def _expressions(read: Resolution) -> list[str]:
    """Return the aggregates of a bin: `<metric>`, its `_min`, `_max` and `_last`, and reasons."""
    found = []
    for name in METRICS:
        ends = ("min({0})", "max({0})") if read.is_raw else ("min({0}.min)", "max({0}.max)")
        parts = (mean_of(name, read), *(end.format(name) for end in ends))
        mean, least, most = (f"({part})::float" for part in parts)
        found.append(f"{mean} as {name}, {least} as {name}_min, {most} as {name}_max")
    for name in LAST:
        last = f"{name}, ts" if read.is_raw else f"{name}.last, start_ms"
        found.append(f"arg_max({last})::float as {name}_last")
    reasons = "clocks_event_reasons"
    for name, bit in REASONS.items():
        if read.is_raw:
            share = f"count_if({reasons} & {bit} <> 0) / nullif(count({reasons}), 0)"
        else:
            share = f"sum({reasons}.{name}) / nullif(sum({reasons}.n), 0)"
        found.append(f"({share})::float as {name}")
    return found


def mean_of(name: str, read: Resolution) -> str:
    """Return the aggregate of a bin that is the mean of a metric."""
    if read.is_raw:
        return f"avg({name})"
    return f"sum({name}.mean * {name}.n) / nullif(sum({name}.n), 0)"


def gpu_series(scope: Scope, gpus: Sequence[str], read: Resolution) -> pl.DataFrame:
    """Return the binned metrics of GPUs: a row for each GPU, instance and bin with a sample.

    Columns: gpu_uuid, gpu_instance, at, samples; `<metric>`, `<metric>_min` and `<metric>_max`;
    `<metric>_last` of LAST; the share of samples with each reason why clocks are lower. Of two
    sources the one with more samples.
    """
    from_ms, to_ms = bounds(scope)
    if read.is_raw:
        samples, source, moment = "count(*)", "staging.stg_gpu_samples", "ts_ms"
        where = "ts >= from_ms($2) and ts < from_ms($3)"
    else:
        samples, source, moment = "sum(samples)", "marts.gpu_metrics", "start_ms"
        where = "start_ms >= $2 - 600000 and start_ms < $3"
    sql = f"""with bins as (
            select
                gpu_uuid, gpu_instance, source, {moment} // {read.bin_ms} * {read.bin_ms} as bin_ms,
                ({samples})::bigint as samples,
                {", ".join(_expressions(read))}
            from {source}
            where list_contains($1::varchar[], gpu_uuid) and {where}
            group by all
        )
        select * exclude (bin_ms, source), from_ms(bin_ms) as at
        from bins
        qualify row_number() over (
            partition by gpu_uuid, gpu_instance, bin_ms order by samples desc, source) = 1
        order by gpu_uuid, gpu_instance, bin_ms"""
    parameters = (tuple(sorted(gpus)), from_ms, to_ms)
    if read.is_of_lake:
        return lake.read(sql, *parameters)
    window = Scope(from_ms=from_ms, to_ms=to_ms, teams=scope.teams)
    return marts.read(sql, window, *parameters)


def peers_band(series: pl.DataFrame, gpu: str, metric: str) -> pl.DataFrame:
    """Return `at`, `low` and `high`: the range of a metric over the peers of a GPU, bin by bin.

    The least and most of up to four peers, of more their 10th and 90th percentile. A peer counts
    once a bin: with the mean of its instances.
    """
    peers = series.filter((pl.col("gpu_uuid") != gpu) & pl.col(metric).is_not_null())
    of_peers = peers.group_by("at", "gpu_uuid").agg(pl.col(metric).mean())
    is_few = of_peers["gpu_uuid"].n_unique() <= 4
    low, high = (0.0, 1.0) if is_few else (0.1, 0.9)
    return (
        of_peers.group_by("at")
        .agg(
            low=pl.col(metric).quantile(low, "linear"),
            high=pl.col(metric).quantile(high, "linear"),
        )
        .sort("at")
    )


def with_holes(series: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """Return `at` and the columns of one series in order, with an empty row in each hole.

    A hole is longer than HOLE_INTERVALS median distances: a line drawn over it would invent data.
    """
    in_order = series.select("at", *columns).sort("at")
    distance = in_order["at"].diff().dt.total_milliseconds()
    usual = distance.median()
    if not isinstance(usual, int | float) or usual <= 0:
        return in_order
    before = in_order.with_columns(until=pl.col("at").shift(-1)).filter(
        (pl.col("until") - pl.col("at")).dt.total_milliseconds() > HOLE_INTERVALS * usual
    )
    empty = before.select(
        (pl.col("at") + pl.duration(milliseconds=int(usual))).cast(in_order.schema["at"]),
        *(pl.lit(None, series.schema[name]).alias(name) for name in columns),
    )
    return pl.concat([in_order, empty]).sort("at")


gpus = marts.reader("gpus", "cluster, node, gpu_index nulls last, gpu_uuid, start_at")
nodes = marts.reader(
    "nodes", "wasted_cost desc nulls last, wasted_ms desc, cluster, node", limit=5000
)


def run_gpus(scope: Scope, run: str) -> list[str]:
    """Return the GPUs that a run held in the window, wherever they are: at most PEERS_MAX."""
    found = marts.read(
        "select distinct gpu_uuid from marts.gpu_allocations where run_key = $1 "
        f"order by gpu_uuid limit {PEERS_MAX}",
        marts.of_any_place(scope),
        run,
    )
    return found["gpu_uuid"].to_list()


allocations = marts.reader(
    "gpu_allocations", "start_at, gpu_uuid, gpu_instance", of=marts.of_any_owner
)


def categories(scope: Scope, read: Resolution) -> pl.DataFrame:
    """Return the ledger of each GPU and instance in bins; bins with one same category are joined.

    Columns: gpu_uuid, gpu_instance, category, label, colour, start_at, end_at; share_ratio: of the
    time from start to end; below_ratio: the sum of those before it in the order of stacks.
    """
    found = marts.read(
        f"""with shares as (
            select *, category_ms / sum(category_ms) over (
                partition by gpu_uuid, gpu_instance, start_ms) as share_ratio
            from marts.category_bins
            where category_ms > 0
        ),
        numbered as (
            select *, start_ms - {read.bin_ms} * row_number() over (
                partition by gpu_uuid, gpu_instance, category, share_ratio = 1 order by start_ms
            ) as whole
            from shares
        )
        select gpu_uuid, gpu_instance, category, any_value(label) as label,
            any_value(colour) as colour, from_ms(scope_start(min(start_ms))) as start_at,
            from_ms(scope_end(max(start_ms) + {read.bin_ms})) as end_at,
            any_value(share_ratio) as share_ratio
        from numbered
        inner join reference.gpu_second_categories using (category)
        group by gpu_uuid, gpu_instance, category, if(share_ratio = 1, whole, start_ms), share_ratio
        """,
        marts.of_any_owner(scope, read.bin_ms),
    )
    unit = ("gpu_uuid", "gpu_instance")
    rank = pl.col("category").map_elements(theme.rank, return_dtype=pl.Int64)
    share = pl.col("share_ratio")
    return found.sort(*unit, "start_at", rank, "category").with_columns(
        below_ratio=share.cum_sum().over(*unit, "start_at") - share
    )


events = marts.reader(
    "gpu_events", "event_at desc, code, message", columns="distinct *", limit=1000
)
errors = marts.reader(  # events without those that inform alone
    "gpu_events", "event_at desc, code, message", columns="distinct *", limit=ERRORS_MAX,
    where="severity is distinct from 'info'",
)  # fmt: skip
# when no reading covered a GPU for GAP_MIN_S or more
telemetry_gaps = marts.reader(
    "telemetry_gaps",
    "gpu_uuid, start_ms",
    columns="cluster, node, gpu_uuid, from_ms(start_ms) as start_at, from_ms(end_ms) as end_at",
    where=f"end_ms - start_ms >= {1000 * GAP_MIN_S}",
    limit=1000,
)
