-- Hours of a unit whose categories do not add up to the time it is in the inventory, to the millisecond.
-- grain: gpu_uuid, gpu_instance, hour_ms
with units as (
    select
        units.gpu_uuid,
        units.gpu_instance,
        units.share_lo,
        units.share_hi,
        units.share_of,
        units.start_ms,
        least(coalesce(units.end_ms, clusters.as_of_ms), clusters.as_of_ms) as end_ms
    from intermediate.int_gpu_units as units
    inner join intermediate.int_clusters as clusters using (cluster)
),

hours as (
    select *, unnest(range(start_ms // one_hour_ms(), (end_ms - 1) // one_hour_ms() + 1)) * one_hour_ms() as hour_ms
    from units
    where end_ms > start_ms
),

expected as (
    select
        gpu_uuid,
        gpu_instance,
        hour_ms,
        sum(share_ms(
            greatest(start_ms, hour_ms), least(end_ms, hour_ms + one_hour_ms()), share_lo, share_hi, share_of
        )) as capacity_ms
    from hours
    group by all
),

found as (
    select gpu_uuid, gpu_instance, hour_ms, sum(gpu_ms) as gpu_ms from marts.ledger_pieces group by all
)

select
    gpu_uuid,
    gpu_instance,
    hour_ms,
    coalesce(expected.capacity_ms, 0) as capacity_ms,
    coalesce(found.gpu_ms, 0) as gpu_ms
from expected
full join found using (gpu_uuid, gpu_instance, hour_ms)
where coalesce(expected.capacity_ms, 0) <> coalesce(found.gpu_ms, 0)
