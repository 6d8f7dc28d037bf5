-- The units of this pass: numbered, since a number sorts and joins faster than two names, and cut to the pass
-- with as much on either side as idleness needs to count.
-- grain: unit
with range as (
    select
        build_from_ms() - build_threshold('idle_min_ms')::bigint as from_ms,
        build_to_ms() + build_threshold('idle_min_ms')::bigint as to_ms
),

clipped as (
    select
        units.* exclude (start_ms, end_ms, gpu_index, slurm_index, method),
        greatest(units.start_ms, range.from_ms) as start_ms,
        least(coalesce(units.end_ms, clusters.as_of_ms), clusters.as_of_ms, range.to_ms) as end_ms
    from intermediate.int_gpu_units as units
    inner join intermediate.int_clusters as clusters using (cluster)
    cross join range
)

select cast(row_number() over (order by gpu_uuid, gpu_instance, start_ms) as integer) as unit, *
from clipped
where end_ms > start_ms and (not build_is_partial() or gpu_uuid in (select gpu_uuid from temp.reopened_gpus))
