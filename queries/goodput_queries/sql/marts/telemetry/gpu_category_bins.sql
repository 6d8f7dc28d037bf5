-- The category in which a GPU or instance spent most of each bin of the scope's bucket_ms: the ledger at the resolution of
-- a chart. Owners do not restrict it.
-- grain: gpu_uuid, gpu_instance, start_ms
-- start_ms: start of the bin, epoch ms
-- category_ms: time of the bin in that category; ledger_ms: time of the bin that the ledger covers
with bucket as (
    select coalesce(getvariable('scope_bucket_ms')::bigint, 3600000) as length_ms
),

pieces as (
    select
        cluster,
        node,
        gpu_uuid,
        gpu_instance,
        category,
        scope_start(start_ms) as start_ms,
        scope_end(end_ms) as end_ms
    from marts.ledger_pieces
    where
        hour_ms > coalesce(getvariable('scope_from_ms')::bigint, 0) - 3600000
        and hour_ms < coalesce(getvariable('scope_to_ms')::bigint, 9223372036854775807)
        and in_window(start_ms, end_ms)
        and in_place(cluster, node, gpu_uuid, gpu_model)
),

cut as (
    select
        *,
        unnest(range(start_ms // length_ms, (end_ms - 1) // length_ms + 1)) * length_ms as bin_ms,
        length_ms
    from pieces
    cross join bucket
    where end_ms > start_ms
),

of_bins as (
    select
        any_value(cluster) as cluster,
        any_value(node) as node,
        gpu_uuid,
        gpu_instance,
        bin_ms as start_ms,
        category,
        sum(least(end_ms, bin_ms + length_ms) - greatest(start_ms, bin_ms))::bigint as category_ms
    from cut
    group by gpu_uuid, gpu_instance, bin_ms, category
)

select
    of_bins.*,
    sum(of_bins.category_ms) over (partition by of_bins.gpu_uuid, of_bins.gpu_instance, of_bins.start_ms)::bigint
        as ledger_ms,
    categories.label,
    categories.colour
from of_bins
inner join reference.gpu_second_categories as categories using (category)
qualify row_number() over (
    partition by of_bins.gpu_uuid, of_bins.gpu_instance, of_bins.start_ms
    order by of_bins.category_ms desc, of_bins.category
) = 1
