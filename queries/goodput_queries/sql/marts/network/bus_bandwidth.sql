-- Bus bandwidth of the scope's communicators by operation and size, of all communicators of one shape, against what is to
-- be expected.
-- grain: cluster, operation, size_from_bytes, ranks, nodes, gpu_model
-- evaluated: first
-- communicators, slow_communicators: number of them; of those that can be judged, how many are slow (null: none can)
-- operations: number of collectives
-- p50_bytes_per_s: median of the collectives; p1_bytes_per_s: what all but the slowest hundredth reach
-- expected_bytes_per_s, expected_by, expected_source: see comm_bandwidth; of_expected_ratio: p50 of it
with communicators as materialized (from marts.comm_bandwidth),

shapes as (
    select cluster, comm_id, operation, size_from_bytes, ranks, nodes, gpu_model from communicators
),

of_operations as (
    select
        shapes.* exclude (comm_id),
        count(*) as operations,
        median(operations.busbw_bytes_per_s) as p50_bytes_per_s,
        quantile_cont(operations.busbw_bytes_per_s, 0.01) as p1_bytes_per_s
    from marts.operation_bandwidth as operations
    inner join shapes using (cluster, comm_id, operation, size_from_bytes)
    group by all
),

of_communicators as (
    select
        cluster,
        operation,
        size_from_bytes,
        ranks,
        nodes,
        gpu_model,
        count(*) as communicators,
        case when count(is_slow) > 0 then count_if(is_slow) end::bigint as slow_communicators,
        any_value(columns(['expected_bytes_per_s', 'expected_by', 'expected_source']))
    from communicators
    group by all
)

select
    of_communicators.*,
    of_operations.operations,
    of_operations.p50_bytes_per_s,
    of_operations.p1_bytes_per_s,
    of_operations.p50_bytes_per_s / of_communicators.expected_bytes_per_s as of_expected_ratio
from of_communicators
inner join of_operations
    on of_communicators.cluster = of_operations.cluster
    and of_communicators.operation = of_operations.operation
    and of_communicators.size_from_bytes = of_operations.size_from_bytes
    and of_communicators.ranks is not distinct from of_operations.ranks
    and of_communicators.nodes is not distinct from of_operations.nodes
    and of_communicators.gpu_model is not distinct from of_operations.gpu_model
