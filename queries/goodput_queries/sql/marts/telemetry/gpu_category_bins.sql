-- The category in which a GPU or instance spent most of each bin of the scope's bucket_ms: the ledger at the resolution of
-- a chart. Owners do not restrict it.
-- grain: gpu_uuid, gpu_instance, start_ms
-- start_ms: start of the bin, epoch ms
-- category_ms: time of the bin in that category; ledger_ms: time of the bin that the ledger covers
select
    bins.* exclude (gpu_ms),
    sum(bins.category_ms) over (partition by bins.gpu_uuid, bins.gpu_instance, bins.start_ms)::bigint
        as ledger_ms,
    categories.label,
    categories.colour
from marts.category_bins as bins
inner join reference.gpu_second_categories as categories using (category)
qualify row_number() over (
    partition by bins.gpu_uuid, bins.gpu_instance, bins.start_ms
    order by bins.category_ms desc, bins.category
) = 1
