-- What the counters of memory errors of a GPU rose by in the hours that the scope's window touches.
-- grain: cluster, node, gpu_uuid, kind, hour_at
-- kind: ecc_corrected, ecc_uncorrected or row_remap of reference.health_kinds; label: its name
-- hour_at: beginning of the hour; null: the counter was read and never rose
-- rise: errors, remapped rows and retired pages; a kind without a row was not reported
with reads as (
    select distinct cluster, node, gpu_uuid, kind
    from intermediate.int_error_reads
    where
        kind in ('ecc_corrected', 'ecc_uncorrected', 'row_remap')
        and in_place(cluster, node, gpu_uuid, gpu_model)
)

select
    reads.*,
    kinds.label,
    from_ms(rises.hour_ms) as hour_at,
    coalesce(rises.rise, 0)::double as rise
from reads
inner join reference.health_kinds as kinds using (kind)
left join intermediate.int_error_rises as rises using (cluster, node, gpu_uuid, kind)
