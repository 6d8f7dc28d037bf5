-- The units of this pass: numbered, since a number sorts and joins faster than two names, and cut to the pass
-- with as much on either side as idleness needs to count.
-- grain: unit
-- from_ms: from when on its hours are replaced
with present as (
    select
        units.* exclude (start_ms, end_ms, gpu_index, slurm_index, method),
        units.start_ms,
        least(
            coalesce(units.end_ms, clusters.as_of_ms),
            clusters.as_of_ms,
            build_to_ms() + build_threshold('idle_min_ms')::bigint
        ) as end_ms,
        case
            when units.gpu_uuid in (select gpu_uuid from temp.reopened_gpus) then build_from_ms()
            else build_whole_from_ms()
        end as from_ms
    from intermediate.int_gpu_units as units
    inner join intermediate.int_clusters as clusters using (cluster)
),

clipped as (
    select * replace (greatest(start_ms, from_ms - build_threshold('idle_min_ms')::bigint) as start_ms)
    from present
    where from_ms < build_to_ms()
)

select cast(row_number() over (order by gpu_uuid, gpu_instance, start_ms) as integer) as unit, *
from clipped
where end_ms > start_ms
