-- skip_if_empty: raw.nccl_benchmarks
with runs as (
    select
        *,
        array_to_string(node_names, ', ') as nodes,
        case when len(node_names) = 1 then node_names[1] end as node,
        row_number() over (partition by cluster, operation, ranks, node_names, size_bytes order by run_at, benchmark_id) as place,
        count(*) over (partition by cluster, operation, ranks, node_names, size_bytes) as runs
    from marts.nccl_benchmarks
    where busbw_bytes_per_s > 0 and epoch_ms(run_at) < scope_to_ms() and sees_all_teams()
),

-- each run as the first of a lower level
splits as (
    select
        firsts.cluster, firsts.node, firsts.operation, firsts.ranks, firsts.nodes, firsts.size_bytes,
        firsts.run_at as start_at,
        firsts.runs - firsts.place + 1 as slow_runs,
        median(others.busbw_bytes_per_s) filter (where others.place < firsts.place) as before_bytes_per_s,
        median(others.busbw_bytes_per_s) filter (where others.place >= firsts.place) as now_bytes_per_s,
        max(others.busbw_bytes_per_s) filter (where others.place >= firsts.place) as most_bytes_per_s
    from runs as firsts
    inner join runs as others using (cluster, operation, ranks, nodes, size_bytes)
    where firsts.place > 1 and firsts.runs > firsts.place
    group by all
),

changed as (
    select *, 'the median of ' || slow_runs || ' runs is ' as what, ' before' as of_what
    from splits
    where most_bytes_per_s < threshold('slow_benchmark_ratio') * before_bytes_per_s
    qualify row_number() over (
        partition by cluster, operation, ranks, nodes, size_bytes order by now_bytes_per_s / before_bytes_per_s, start_at
    ) = 1
),

last_runs as (select *, len(node_names) as width from runs where place = runs),

among_peers as (
    select
        own.cluster, own.node, own.operation, own.ranks, own.nodes, own.size_bytes,
        any_value(own.run_at) as start_at,
        median(peers.busbw_bytes_per_s) as before_bytes_per_s,
        any_value(own.busbw_bytes_per_s) as now_bytes_per_s,
        'the last run is ' as what,
        ' on ' || count(*) || ' others of its shape' as of_what
    from last_runs as own
    inner join last_runs as peers
        on own.cluster = peers.cluster
        and own.operation = peers.operation
        and own.ranks = peers.ranks
        and own.width = peers.width
        and own.size_bytes = peers.size_bytes
        and own.gpu_model is not distinct from peers.gpu_model
        and own.nodes <> peers.nodes
    group by own.cluster, own.node, own.operation, own.ranks, own.nodes, own.size_bytes
    having
        count(*) >= threshold('slow_benchmark_min_peers')
        and any_value(own.busbw_bytes_per_s) < threshold('slow_benchmark_ratio') * median(peers.busbw_bytes_per_s)
),

found as (
    select * exclude (slow_runs, most_bytes_per_s) from changed
    union all by name
    select * from among_peers
    anti join changed using (cluster, operation, ranks, nodes, size_bytes)
)

select
    cluster,
    node,
    nodes || ', ' || operation || ' on ' || ranks || ' ranks' as detail,
    start_at,
    null::timestamp as end_at,
    'Likely' as confidence,
    operation || ' of ' || nodes || ': ' || what || printf('%.0f GB/s, %.0f %% less than %.0f GB/s', now_bytes_per_s / 1e9,
        100 * (1 - now_bytes_per_s / before_bytes_per_s), before_bytes_per_s / 1e9) || of_what as evidence
from found
