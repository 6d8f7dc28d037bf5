-- Bus bandwidth to expect by shape and size: the site's own nccl-tests, and published figures.
-- grain: cluster, gpu_model, ranks, nodes, operation, size_from_bytes, expected_by, link, expected_source
-- cluster, gpu_model: null: any (published figures are of a kind of GPU, gpu_kind)
-- expected_by: nccl-tests (the median of the best of each run), reference
-- link: kind of link of a published figure: NVLink ring, NVLink SHARP (reduction in the switch) ...; null: of the site itself
-- busbw_bytes_per_s: bytes/s; expected_source: which runs, or who published it
with of_runs as (
    select
        cluster,
        gpu_model,
        ranks,
        len(nodes) as nodes,
        operation,
        size_bucket(size_bytes) as size_from_bytes,
        max(busbw_bytes_per_s) as busbw_bytes_per_s
    from staging.stg_nccl_benchmarks
    where size_bytes > 0 and operation <> '' and busbw_bytes_per_s > 0 and coalesce(wrong, 0) = 0
    group by cluster, benchmark_id, gpu_model, ranks, len(nodes), operation, size_bucket(size_bytes)
)

select
    cluster,
    gpu_model,
    null::varchar as gpu_kind,
    ranks,
    nodes,
    operation,
    size_from_bytes,
    'nccl-tests' as expected_by,
    null::varchar as link,
    median(busbw_bytes_per_s) as busbw_bytes_per_s,
    count(*) || ' runs of nccl-tests here' as expected_source
from of_runs
group by cluster, gpu_model, ranks, nodes, operation, size_from_bytes
union all
select
    null,
    null,
    gpu_kind,
    ranks,
    nodes,
    operation,
    size_bucket(size_bytes),
    'reference',
    link,
    busbw_bytes_per_s,
    source || ', ' || link
from reference.bus_bandwidth
