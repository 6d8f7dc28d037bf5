-- The ledger of each GPU or instance in bins of the scope's bucket_ms, for charts. Owners do not restrict it.
-- grain: gpu_uuid, gpu_instance, start_ms, category
-- start_ms: start of the bin, epoch ms
-- category_ms: time of the bin in that category; gpu_ms: the same as milliseconds of a whole GPU
with segments as (
    select * exclude (gpu_ms) from intermediate.int_segment_bins where share_of is not null
),

pieces as (
    select cluster, node, gpu_uuid, gpu_instance, bin_ms, category, ms, gpu_ms
    from ledger_of('segments')
    union all
    select cluster, node, gpu_uuid, gpu_instance, bin_ms, category, gpu_ms, gpu_ms
    from intermediate.int_segment_bins
    where share_of is null
)

select
    any_value(cluster) as cluster,
    any_value(node) as node,
    gpu_uuid,
    gpu_instance,
    bin_ms as start_ms,
    category,
    sum(ms)::bigint as category_ms,
    sum(gpu_ms) as gpu_ms
from pieces
group by gpu_uuid, gpu_instance, bin_ms, category
