-- Results of nccl-tests with the cluster, the canonical names of the nodes and when the run was.
-- grain: source, benchmark_id, operation, size_bytes, dtype, reduction, root, is_in_place, repeat
-- at_ms: its start, else when it was read in (is_dated is false)
select
    benchmarks.source,
    coalesce(benchmarks.cluster, 'default') as cluster,
    benchmarks.* exclude (source, cluster, elements, algbw_bytes_per_s, started_at, load_sequence),
    benchmarks.started_at is not null as is_dated,
    to_ms(coalesce(benchmarks.started_at, ingested.loaded_at)) as at_ms
from raw.nccl_benchmarks as benchmarks
left join state.ingested as ingested on benchmarks.load_sequence = ingested.sequence
