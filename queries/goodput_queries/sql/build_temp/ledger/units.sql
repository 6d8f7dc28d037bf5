-- The units of this pass: numbered, since a number sorts and joins faster than two names, and cut to the pass
-- with as much on either side as idleness needs to count.
-- grain: unit
with present as (
    select
        units.* exclude (start_ms, end_ms, gpu_index, slurm_index, method),
        units.start_ms,
        least(
            coalesce(units.end_ms, clusters.as_of_ms),
            clusters.as_of_ms,
            build_to_ms() + threshold('idle_min_ms')::bigint
        ) as end_ms
    from intermediate.int_gpu_units as units
    inner join intermediate.int_clusters as clusters using (cluster)
),

clipped as (
    select * replace (greatest(start_ms, build_from_ms() - threshold('idle_min_ms')::bigint) as start_ms)
    from present
)

select cast(row_number() over (order by gpu_uuid, gpu_instance, start_ms) as integer) as unit, *
from clipped
where end_ms > start_ms
