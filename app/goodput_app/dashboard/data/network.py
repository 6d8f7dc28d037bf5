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
    of_node = _of_places(scope)
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
        _of_places(scope),
    )


def links(scope: Scope) -> pl.DataFrame:
    """Return the network ports, worst trouble first; `total` is how many there are."""
    return marts.read(
        f"""select *, count(*) over () as total
        from marts.link_errors
        order by list_position(['down', 'lost', 'errors', 'drops'], trouble) nulls last,
            link_downs desc nulls last, errors + coalesce(symbol_errors, 0) desc nulls last,
            drops desc nulls last, cluster, node, kind, device, port
        limit {LINKS_SHOWN}""",
        _of_places(scope),
    )


def gpu_links(scope: Scope) -> pl.DataFrame:
    """Return NVLink and PCIe errors of GPUs, most first."""
    return marts.read(
        "select * from marts.gpu_link_errors "
        f"order by errors desc, node, gpu_index, gpu_uuid, metric limit {LINKS_SHOWN}",
        _of_places(scope),
    )


def retransmits(scope: Scope) -> pl.DataFrame:
    """Return the share of TCP segments that nodes retransmitted, the highest first."""
    return marts.read(
        "select * from marts.tcp_retransmits where sent_segments > 0 "
        f"order by retransmit_ratio desc, cluster, node limit {LINKS_SHOWN}",
        _of_places(scope),
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
        replace(scope, bucket_ms=None),
    )


def algorithms(scope: Scope) -> pl.DataFrame:
    """Return the bus bandwidth by algorithm and protocol, by operation and size."""
    order_by = "operation, ranks, nodes, size_from_bytes, cluster, measured_by, samples desc"
    return marts.in_order("marts.algorithm_bandwidth", scope, order_by)


def fits(scope: Scope) -> pl.DataFrame:
    """Return latency and bandwidth by operation and ranks, those over most nodes first."""
    return marts.in_order("marts.collective_fits", scope, "nodes desc, ranks desc, shape")


def tiers(scope: Scope) -> pl.DataFrame:
    """Return the share of the bytes that ranks send in collectives inside of nodes, by cluster."""
    return marts.read(
        """with sent as (
            select cluster, nodes, size_bytes * bus_factor(operation, ranks) as bytes
            from marts.operation_bandwidth where nodes is not null
        )
        select cluster, sum(if(nodes = 1, bytes, 0)) / sum(bytes) as inside_ratio
        from sent where bytes > 0 group by cluster order by cluster""",
        replace(scope, bucket_ms=None),
    )


def collective_times(scope: Scope, shape: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the measured times of a shape by size, and those of its fit and of more ranks."""
    of_all = replace(scope, bucket_ms=None)
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
        _of_places(scope),
    )


def port_map(scope: Scope) -> pl.DataFrame:
    """Return the busiest hour of each port: `line_rate_ratio` and `hour_at`, by rack and node."""
    return marts.read(
        f"""select cluster, any_value(rack) as rack, node, kind, device, port,
            max(line_rate_ratio) as line_rate_ratio, arg_max(hour_at, line_rate_ratio) as hour_at
        from marts.line_rates
        group by cluster, node, kind, device, port
        order by cluster, rack, node, kind, device, port limit {PORTS_DRAWN}""",
        _of_places(scope),
    )


def racks(scope: Scope) -> pl.DataFrame:
    """Return the bandwidth of racks to the outside, the busiest first."""
    order_by = "line_rate_ratio desc, cluster, rack, kind"
    return marts.in_order("marts.rack_line_rates", _of_places(scope), order_by)


def communicators(scope: Scope) -> pl.DataFrame:
    """Return communicators by operation and size, the slowest against expectation first."""
    return marts.read(
        f"""select *, array_to_string(node_names, ', ') as members
        from marts.comm_bandwidth
        where of_expected_ratio is not null and is_slow is not null
        order by of_expected_ratio, cluster, comm_id, operation, size_from_bytes
        limit {LINKS_SHOWN}""",
        replace(scope, bucket_ms=None),
    )


def slow_nodes(scope: Scope) -> pl.DataFrame:
    """Return nodes of slow communicators, the surest and slowest first."""
    return marts.read(
        """select * from marts.slow_nodes
        order by list_position(['Confirmed', 'Likely', 'Not confirmed'], verdict), least_ratio,
            slow_communicators desc, cluster, node
        limit 200""",
        replace(scope, bucket_ms=None),
    )


def transports(scope: Scope) -> pl.DataFrame:
    """Return which transport NCCL uses where, fall-backs to sockets first."""
    order_by = "is_fallback desc, cluster, run_id nulls last, node, transport"
    return marts.in_order("marts.transports", scope, order_by, limit=LINKS_SHOWN)


def benchmarks(scope: Scope) -> pl.DataFrame:
    """Return the runs of nccl-tests, whatever the window, oldest first: a baseline is older."""
    return marts.read(
        "select *, array_to_string(node_names, ', ') as members from marts.nccl_benchmarks "
        "order by run_at, benchmark_id, operation",
        replace(_of_places(scope), from_ms=None, to_ms=None),
    )


def _mean(name: str) -> str:
    length = f"(end_ms - start_ms) filter (where {name} is not null)"
    return f"sum({name} * (end_ms - start_ms)) / nullif(sum{length}, 0) as {name}"


def _of_places(scope: Scope) -> Scope:
    """Return the scope without filters of owners, who do not own a host or a link."""
    return replace(scope, team=None, user=None, run=None, partition=None, bucket_ms=None)
