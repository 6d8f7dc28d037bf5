-- Bus bandwidth of each communicator of the scope's nodes and runs in the window, by operation and size, against what is
-- to be expected.
-- grain: cluster, comm_id, operation, size_from_bytes
-- skip_if_empty: raw.collectives, raw.collective_summaries
-- run_key, run_id, job_name: of its processes; null: not known, or of several runs
-- gpu_model: of its nodes; null: not known, or several
-- operations: number of them that were read; coverage_ratio: share of the sequence numbers that was read
-- p50_bytes_per_s, p1_bytes_per_s, p99_bytes_per_s: median, what all but the slowest hundredth and what the fastest reach
-- expected_bytes_per_s, expected_by, expected_source: nccl-tests of the site in the same shape, else a published figure,
--  at the nearest size from an eighth of this one on, inside a node from 256 MiB on at a larger one too, of the slowest
--  link that fits; null: unknown
-- peers_bytes_per_s: the 90th percentile of the medians of communicators of the same shape, where there are enough
-- of_expected_ratio: p50 of what is expected, else of the peers; null where neither is known
-- is_slow: large enough to be judged, and below the threshold; null: not to be judged
with operations as materialized (from marts.operation_bandwidth),

processes as materialized (
    select distinct cluster, comm_id, node, pid
    from staging.stg_collectives
    where
        not is_p2p
        and dumped_at >= from_ms(scope_from_ms())
        and dumped_at < scope_to_at()
        and in_cluster(cluster)
),

members as (
    select cluster, comm_id, list(distinct node order by node) as node_names
    from processes
    group by cluster, comm_id
),

runs as (
    select processes.cluster, processes.comm_id, min(attempts.run_key) as run_key
    from processes
    inner join intermediate.int_rank_gpus as ranks using (cluster, node, pid)
    inner join intermediate.int_attempts as attempts using (attempt_key)
    group by processes.cluster, processes.comm_id
    having count(distinct attempts.run_key) = 1
),

owners as (
    select
        run_key,
        any_value(columns(['run_id', 'job_name', 'team', 'user_name', 'partition']))
    from intermediate.int_job_run_owners
    group by run_key
),

models as (
    select members.cluster, members.comm_id, min(gpus.gpu_model) as gpu_model
    from (select cluster, comm_id, unnest(node_names) as node from members) as members
    inner join intermediate.int_gpu_inventory as gpus using (cluster, node)
    group by members.cluster, members.comm_id
    having count(distinct gpus.gpu_model) = 1
),

coverage as (
    select
        cluster,
        comm_id,
        operation,
        count(*) / (max(sequence_number) - min(sequence_number) + 1) as coverage_ratio
    from operations
    group by cluster, comm_id, operation
),

measured as (
    select
        operations.cluster,
        operations.comm_id,
        operations.operation,
        operations.size_from_bytes,
        any_value(operations.ranks) as ranks,
        coalesce(any_value(operations.nodes), len(any_value(members.node_names))) as nodes,
        any_value(members.node_names) as node_names,
        any_value(models.gpu_model) as gpu_model,
        any_value(runs.run_key) as run_key,
        count(*) as operations,
        any_value(coverage.coverage_ratio) as coverage_ratio,
        median(operations.busbw_bytes_per_s) as p50_bytes_per_s,
        quantile_cont(operations.busbw_bytes_per_s, 0.01) as p1_bytes_per_s,
        quantile_cont(operations.busbw_bytes_per_s, 0.99) as p99_bytes_per_s
    from operations
    left join members using (cluster, comm_id)
    left join models using (cluster, comm_id)
    left join runs using (cluster, comm_id)
    left join coverage using (cluster, comm_id, operation)
    group by operations.cluster, operations.comm_id, operations.operation, operations.size_from_bytes
),

with_peers as (
    select
        *,
        case
            when count(*) over shape >= threshold('slow_link_min_peers')
                then quantile_cont(p50_bytes_per_s, 0.9) over shape
        end as peers_bytes_per_s
    from measured
    window shape as (partition by cluster, operation, size_from_bytes, ranks, nodes, gpu_model)
),

of_links as (
    select
        shapes.*,
        found.busbw_bytes_per_s as expected_bytes_per_s,
        found.expected_by,
        found.expected_source
    from (
        select distinct cluster, operation, size_from_bytes, ranks, nodes, gpu_model from measured
    ) as shapes
    inner join marts.expected_bandwidth as found
        on (found.cluster is null or shapes.cluster = found.cluster)
        and shapes.operation = found.operation
        and shapes.ranks = found.ranks
        and shapes.nodes = found.nodes
        and found.size_from_bytes >= shapes.size_from_bytes / 8
        and (
            found.size_from_bytes <= shapes.size_from_bytes
            -- inside a node the curve is nearly flat from here on: at 256 MiB 90 % of that at 8 GiB
            or (shapes.nodes = 1 and shapes.size_from_bytes >= 268435456)
        )
        and coalesce(is_model(shapes.gpu_model, found.gpu_kind), found.gpu_kind is null)
        and coalesce(lower(shapes.gpu_model) = lower(found.gpu_model), true)
    qualify row_number() over (
        partition by shapes.cluster, shapes.operation, shapes.size_from_bytes, shapes.ranks, shapes.nodes,
            shapes.gpu_model, found.expected_by, found.link
        order by
            abs(log2(found.size_from_bytes / shapes.size_from_bytes)), found.busbw_bytes_per_s, found.expected_source
    ) = 1
),

-- of several links the slowest counts: reduction in the switch may be off, and nothing that is read says so
expected as (
    select *
    from of_links
    qualify row_number() over (
        partition by cluster, operation, size_from_bytes, ranks, nodes, gpu_model
        order by expected_by = 'reference', expected_bytes_per_s, expected_source
    ) = 1
)

select
    measured.*,
    owners.run_id,
    owners.job_name,
    expected.expected_bytes_per_s,
    expected.expected_by,
    expected.expected_source,
    measured.p50_bytes_per_s / coalesce(expected.expected_bytes_per_s, measured.peers_bytes_per_s)
        as of_expected_ratio,
    case
        when measured.size_from_bytes >= threshold('slow_link_min_bytes')
            then measured.p50_bytes_per_s
                < threshold('slow_link_ratio')
                * coalesce(expected.expected_bytes_per_s, measured.peers_bytes_per_s)
    end as is_slow
from with_peers as measured
left join expected
    on measured.cluster = expected.cluster
    and measured.operation = expected.operation
    and measured.size_from_bytes = expected.size_from_bytes
    and measured.ranks = expected.ranks
    and measured.nodes = expected.nodes
    and measured.gpu_model is not distinct from expected.gpu_model
left join owners on measured.run_key = owners.run_key
where
    of_owner(owners.team, owners.user_name, measured.run_key, owners.partition)
    and (chosen_node() is null or list_contains(measured.node_names, chosen_node()))
    and in_gpu_model(measured.gpu_model)
