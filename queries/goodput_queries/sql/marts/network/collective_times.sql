-- Time of collectives by their exact size: the points that collective_fits goes through.
-- grain: shape, size_bytes
-- evaluated: first
-- shape: cluster, operation, ranks, nodes, GPU model and measured_by in one text: what one fit is of
-- measured_by: NCCL Inspector (of the window; the rank that waited least, without slow communicators), nccl-tests (all runs
--  without wrong values)
-- size_bytes: as nccl-tests counts it; samples: number of operations, or of results
-- p50_s: median time; busbw_bytes_per_s: size over it, times the bus factor of the operation
with communicators as materialized (
    select cluster, comm_id, operation, size_from_bytes, ranks, nodes, gpu_model
    from marts.comm_bandwidth
    qualify not coalesce(bool_or(is_slow) over (partition by cluster, comm_id), false)
),

measured as (
    select
        cluster, operation, communicators.ranks, communicators.nodes, gpu_model, 'NCCL Inspector' as measured_by, size_bytes,
        exec_time_s as time_s
    from marts.operation_bandwidth as operations
    inner join communicators using (cluster, comm_id, operation, size_from_bytes)
    union all
    select cluster, operation, ranks, len(nodes), gpu_model, 'nccl-tests', size_bytes, time_s
    from staging.stg_nccl_benchmarks
    where
        coalesce(wrong, 0) = 0
        and in_cluster(cluster)
        and (chosen_node() is null or list_contains(nodes, chosen_node()))
        and in_gpu_model(gpu_model)
)

select
    concat_ws('/', cluster, operation, ranks, nodes, measured_by, gpu_model) as shape,
    * exclude (time_s),
    count(*) as samples,
    median(time_s) as p50_s,
    size_bytes / median(time_s) * bus_factor(operation, ranks) as busbw_bytes_per_s
from measured
where time_s > 0 and size_bytes > 0 and ranks > 1 and nodes > 0 and bus_factor(operation, ranks) > 0
group by cluster, operation, ranks, nodes, gpu_model, measured_by, size_bytes
