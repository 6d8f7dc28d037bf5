-- Stretches in which every reading of a GPU showed no activity: from the last active reading before to the
-- first active one after; a hole in the readings ends a stretch, since nobody saw what was in it. Those of the
-- scope's window and of six to twelve hours before and after it, where longer ones are cut.
-- grain: gpu_uuid, gpu_instance, start_ms
-- evaluated: first
-- end_ms: the next active reading; without one, the last idle reading
-- seen_ms: time covered by readings
with units as materialized (
    -- sorted and grouped by a number: two names take twice as long
    select gpu_uuid, gpu_instance, (row_number() over ())::integer as unit
    from (select distinct gpu_uuid, gpu_instance from intermediate.int_gpu_activity)
),

activity as (
    select units.unit, acts.is_active, acts.start_ms, acts.end_ms, acts.next_reading_ms, acts.interval_ms
    from intermediate.int_gpu_activity as acts
    inner join units using (gpu_uuid, gpu_instance)
    where
        -- whole quarters of a day, so that the start of a long stretch stays as a window moves
        acts.end_ms > (scope_from_ms() // 21600000 - 1) * 21600000
        and (
            chosen_to_ms() is null
            or acts.start_ms < (chosen_to_ms() // 21600000 + 2) * 21600000
        )
),

runs as (
    select
        *,
        lag(is_active) over gpu as is_previous_active,
        start_ms - lag(end_ms) over gpu as hole_ms,
        lead(is_active) over gpu as is_next_active
    from activity
    window gpu as (partition by unit order by start_ms)
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
        count_if(is_new) over (partition by unit order by start_ms rows unbounded preceding) as island
    from idle
)

select
    any_value(units.gpu_uuid) as gpu_uuid,
    any_value(units.gpu_instance) as gpu_instance,
    min(start_ms) as start_ms,
    case
        when arg_max(is_next_active, start_ms)
            and arg_max(next_reading_ms - end_ms, start_ms) <= threshold('gap_hole_reach') * max(interval_ms)
            then arg_max(next_reading_ms, start_ms)
        else max(end_ms)
    end as end_ms,
    sum(end_ms - start_ms)::bigint as seen_ms
from numbered
inner join units using (unit)
group by unit, island
