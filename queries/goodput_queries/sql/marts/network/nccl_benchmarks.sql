-- Runs of nccl-tests: the bandwidth at the largest size of each, over time.
-- grain: cluster, benchmark_id, operation
-- run_at: its start; where is_dated is false, when it was read in
-- node_names: hosts that took part; ranks; gpu_model: null: several, or not known
-- size_bytes: the largest size; busbw_bytes_per_s: the best result at it
-- before_bytes_per_s: of the run of the same shape and size before it; change_ratio: of it
-- wrong: number of wrong values in the run; null: not checked
with of_runs as (
    select
        cluster,
        benchmark_id,
        operation,
        from_ms(any_value(at_ms)) as run_at,
        any_value(columns(['is_dated', 'ranks', 'gpu_model', 'nccl_version'])),
        any_value(nodes) as node_names,
        max(size_bytes) filter (where busbw_bytes_per_s is not null) as size_bytes,
        max_by(busbw_bytes_per_s, (size_bytes, busbw_bytes_per_s)) as busbw_bytes_per_s,
        sum(wrong)::bigint as wrong
    from staging.stg_nccl_benchmarks
    where in_cluster(cluster)
    group by cluster, benchmark_id, operation
)

select
    *,
    lag(busbw_bytes_per_s) over shape as before_bytes_per_s,
    busbw_bytes_per_s / lag(busbw_bytes_per_s) over shape - 1 as change_ratio
from of_runs
where chosen_node() is null or list_contains(node_names, chosen_node())
window shape as (partition by cluster, operation, ranks, node_names, size_bytes order by run_at, benchmark_id)
