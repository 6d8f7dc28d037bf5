"""Hosts and their network: series of one node, and what the fleet's links and bandwidth did."""

from dataclasses import replace

import polars as pl

from goodput_app.dashboard.data import lake, marts, metrics
from goodput_queries.scope import Scope

HOST = (
    *("cpu_busy_ratio", "cpu_iowait_ratio", "cpu_steal_ratio", "memory_used_bytes"),
    *("swap_used_bytes", "disk_read_bytes_per_s", "disk_write_bytes_per_s"),
)
KINDS = ("ethernet", "infiniband")
LINKS_SHOWN = 500
PORTS_DRAWN = 20_000
EVENTS_SHOWN = 200
MEMBERS = "*, array_to_string(node_names, ', ') as members"


def host_series(scope: Scope, read: metrics.Resolution) -> pl.DataFrame:
    """Return the metrics of the scope's host in bins: `at` and those of HOST and of its links.

    Of intervals in one bin the mean by their length; `<kind>_rx_bytes_per_s` and `_tx_` are sums
    over the ports of a kind. A bin without a reading has no row.
    """
    bin_ms = read.bin_ms
    means = ", ".join(_mean(name) for name in HOST)
    traffic = ", ".join(
        f"sum({way}) filter (where kind = '{kind}') as {kind}_{way}"
        for kind in KINDS
        for way in ("rx_bytes_per_s", "tx_bytes_per_s")
    )
    sql = f"""with hosts as (
            select (end_ms - 1) // {bin_ms} * {bin_ms} as bin_ms, {means}
            from marts.host_intervals group by all
        ),
        ports as (
            select (end_ms - 1) // {bin_ms} * {bin_ms} as bin_ms, kind, device, port,
                {_mean("rx_bytes_per_s")}, {_mean("tx_bytes_per_s")}
            from marts.link_intervals group by all
        ),
        links as (select bin_ms, {traffic} from ports group by bin_ms)
        select from_ms(bin_ms) as at, * exclude (bin_ms)
            rename (memory_used_bytes as host_memory_used_bytes)
        from hosts full join links using (bin_ms)
        order by bin_ms"""
    of_node = marts.of_any_owner(scope)
    if read.is_of_lake:
        return lake.read_host(sql, of_node)
    return marts.read(sql, of_node)


def link_events(scope: Scope) -> pl.DataFrame:
    """Return when links of the scope's nodes were down, and the runs then; the latest first.

    runs: their names; run_key, run_id, job_name: of one of them
    """
    return marts.read(
        f"""with hit as (
            select cluster, node, kind, device, port, start_at,
                string_agg(distinct coalesce(job_name, run_id), ', '
                    order by coalesce(job_name, run_id)) as runs,
                min_by(run_key, run_id) as run_key, min(run_id) as run_id,
                min_by(job_name, run_id) as job_name
            from marts.link_event_runs group by all
        )
        select events.*, hit.runs, hit.run_key, hit.run_id, hit.job_name
        from marts.link_events as events
        left join hit using (cluster, node, kind, device, port, start_at)
        order by start_at desc, cluster, node, kind, device, port limit {EVENTS_SHOWN}""",
        marts.of_any_owner(scope),
    )


# worst trouble first
links = marts.reader(
    "link_errors",
    "list_position(['down', 'lost', 'errors', 'drops'], trouble) nulls last, "
    "link_downs desc nulls last, errors + coalesce(symbol_errors, 0) desc nulls last, "
    "drops desc nulls last, cluster, node, kind, device, port",
    columns=marts.COUNTED,
    limit=LINKS_SHOWN,
    of=marts.of_any_owner,
)
gpu_links = marts.reader(
    "gpu_link_errors",
    "errors desc, node, gpu_index, gpu_uuid, metric",
    limit=LINKS_SHOWN,
    of=marts.of_any_owner,
)
retransmits = marts.reader(
    "tcp_retransmits",
    "retransmit_ratio desc, cluster, node",
    where="sent_segments > 0",
    limit=LINKS_SHOWN,
    of=marts.of_any_owner,
)


def bandwidth(scope: Scope) -> pl.DataFrame:
    """Return the bus bandwidth by operation and size; `shape` numbers shapes, busiest first."""
    return marts.read(
        """with of_shapes as (
            select *, sum(operations) over (partition by cluster, ranks, nodes, gpu_model) as in_all
            from marts.bus_bandwidth
        )
        select *, dense_rank() over (
            order by in_all desc, cluster, ranks, nodes, gpu_model) as shape
        from of_shapes
        order by shape, operation, size_from_bytes""",
        marts.without_buckets(scope),
    )


algorithms = marts.reader(
    "algorithm_bandwidth",
    "operation, ranks, nodes, size_from_bytes, cluster, measured_by, samples desc",
)
fits = marts.reader("collective_fits", "nodes desc, ranks desc, shape")


def tiers(scope: Scope) -> pl.DataFrame:
    """Return the share of the bytes that ranks send in collectives inside of nodes, by cluster."""
    return marts.read(
        """with sent as (
            select cluster, nodes, size_bytes * bus_factor(operation, ranks) as bytes
            from marts.operation_bandwidth where nodes is not null
        )
        select cluster, sum(if(nodes = 1, bytes, 0)) / sum(bytes) as inside_ratio
        from sent where bytes > 0 group by cluster order by cluster""",
        marts.without_buckets(scope),
    )


def collective_times(scope: Scope, shape: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the measured times of a shape by size, and those of its fit and of more ranks."""
    of_all = marts.without_buckets(scope)
    points, forecasts = (
        marts.read(f"from marts.{mart} where shape = $1 order by {order}", of_all, shape)
        for mart, order in (
            ("collective_times", "size_bytes"),
            ("collective_forecasts", "forecast_ranks, size_bytes"),
        )
    )
    return points, forecasts


def line_rates(scope: Scope) -> pl.DataFrame:
    """Return `hour_at`, `kind`, `ports`, median and highest share of line rate by hour."""
    return marts.read(
        """select hour_at, kind, count(*) as ports, median(line_rate_ratio) as median_ratio,
            max(line_rate_ratio) as busiest_ratio
        from marts.line_rates where line_rate_ratio is not null
        group by all order by kind, hour_at""",
        marts.of_any_owner(scope),
    )


def port_map(scope: Scope) -> pl.DataFrame:
    """Return the busiest hour of each port: `line_rate_ratio` and `hour_at`, by rack and node."""
    return marts.read(
        f"""select cluster, any_value(rack) as rack, node, kind, device, port,
            max(line_rate_ratio) as line_rate_ratio, arg_max(hour_at, line_rate_ratio) as hour_at
        from marts.line_rates
        group by cluster, node, kind, device, port
        order by cluster, rack, node, kind, device, port limit {PORTS_DRAWN}""",
        marts.of_any_owner(scope),
    )


racks = marts.reader(
    "rack_line_rates", "line_rate_ratio desc, cluster, rack, kind", of=marts.of_any_owner
)
# the slowest against expectation first
communicators = marts.reader(
    "comm_bandwidth",
    "of_expected_ratio, cluster, comm_id, operation, size_from_bytes",
    columns=MEMBERS,
    where="of_expected_ratio is not null and is_slow is not null",
    limit=LINKS_SHOWN,
)
# the surest and slowest first
slow_nodes = marts.reader(
    "slow_nodes",
    "list_position(['Confirmed', 'Likely', 'Not confirmed'], verdict), least_ratio, "
    "slow_communicators desc, cluster, node",
    limit=200,
)
transports = marts.reader(
    "transports", "is_fallback desc, cluster, run_id nulls last, node, transport", limit=LINKS_SHOWN
)
# whatever the window, oldest first: a baseline is older
benchmarks = marts.reader(
    "nccl_benchmarks",
    "run_at, benchmark_id, operation",
    columns=MEMBERS,
    of=lambda scope: replace(marts.of_any_owner(scope), from_ms=None, to_ms=None),
)


def _mean(name: str) -> str:
    length = f"(end_ms - start_ms) filter (where {name} is not null)"
    return f"sum({name} * (end_ms - start_ms)) / nullif(sum{length}, 0) as {name}"
