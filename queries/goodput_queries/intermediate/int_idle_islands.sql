-- Stretches in which every reading of a GPU showed no activity: from the last active reading before to the
-- first active one after; a hole in the readings ends a stretch, since nobody saw what was in it.
-- grain: gpu_uuid, gpu_instance, start_ms
-- end_ms: the next active reading; without one, the last idle reading
-- seen_ms: time covered by readings
with runs as (
    select
        *,
        lag(is_active) over gpu as is_previous_active,
        start_ms - lag(end_ms) over gpu as hole_ms,
        lead(is_active) over gpu as is_next_active
    from intermediate.int_gpu_activity
    window gpu as (partition by gpu_uuid, gpu_instance order by start_ms)
),

idle as (
    select
        *,
        coalesce(
            is_previous_active or hole_ms > threshold('gap_hole_reach') * interval_ms, true
        ) as is_new
    from runs
    where not is_active
),

numbered as (
    select
        *,
        count_if(is_new) over (
            partition by gpu_uuid, gpu_instance order by start_ms
            rows between unbounded preceding and current row
        ) as island
    from idle
)

select
    gpu_uuid,
    gpu_instance,
    min(start_ms) as start_ms,
    case
        when arg_max(is_next_active, start_ms)
            and arg_max(next_reading_ms - end_ms, start_ms) <= threshold('gap_hole_reach') * max(interval_ms)
            then arg_max(next_reading_ms, start_ms)
        else max(end_ms)
    end as end_ms,
    sum(end_ms - start_ms)::bigint as seen_ms
from numbered
group by gpu_uuid, gpu_instance, island
