-- The ledger of each GPU or instance in bins of the scope's bucket_ms, for charts. Owners do not restrict it.
-- grain: gpu_uuid, gpu_instance, start_ms, category
-- start_ms: start of the bin, epoch ms
-- category_ms: time of the bin in that category; gpu_ms: the same as milliseconds of a whole GPU
select
    any_value(cluster) as cluster,
    any_value(node) as node,
    gpu_uuid,
    gpu_instance,
    start_ms,
    category,
    sum(piece_ms)::bigint as category_ms,
    sum(gpu_ms) as gpu_ms
from marts.bin_pieces
group by gpu_uuid, gpu_instance, start_ms, category
