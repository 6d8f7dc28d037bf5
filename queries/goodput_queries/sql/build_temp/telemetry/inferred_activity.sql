-- Telemetry activity of units without a known owner, where no scheduler covers the node: activity counts as allocated,
-- and so do pauses in it that are shorter than the idle minimum.
-- materialised: inline, since one stage reads it
-- grain: unit, start_ms
-- activity: 4 active, 5 a pause in it, 6 idle, 8 inactive in it in a single reading, or by readings too far apart for a pause
with seen as (
    select
        units.unit,
        gaps.start_ms as gap_ms,
        activity.is_active,
        greatest(activity.start_ms, gaps.start_ms) as start_ms,
        least(activity.end_ms, gaps.end_ms) as end_ms,
        activity.first_reading_ms,
        activity.end_ms > activity.first_reading_ms as has_more,
        activity.interval_ms
    from temp.unscheduled_gaps as gaps
    inner join temp.units as units using (unit)
    inner join intermediate.int_gpu_activity as activity
        on units.gpu_uuid = activity.gpu_uuid
        and units.gpu_instance = activity.gpu_instance
        and activity.start_ms < gaps.end_ms
        and activity.end_ms > gaps.start_ms
    where
        activity.hour_ms > build_from_ms() - threshold('idle_min_ms')::bigint - one_hour_ms()
        and activity.hour_ms < build_to_ms() + threshold('idle_min_ms')::bigint
),

marked as (
    select
        *,
        (unit, gap_ms, is_active, start_ms) is distinct from lag((unit, gap_ms, is_active, end_ms)) over (
            order by unit, start_ms, end_ms
        ) as is_new
    from seen
),

stretches as (
    select
        unit,
        gap_ms,
        is_active,
        min(start_ms) as start_ms,
        max(end_ms) as end_ms,
        inactivity_kind(
            count(distinct first_reading_ms) > 1 or bool_or(has_more), max(interval_ms), false
        ) as kind
    from (
        select *, count_if(is_new) over (order by unit, start_ms, end_ms rows unbounded preceding) as stretch
        from marked
    )
    group by unit, gap_ms, is_active, stretch
)

select
    unit,
    case
        when is_active then 4
        when
            end_ms - start_ms < threshold('idle_min_ms')
            and lag((unit, gap_ms, is_active, end_ms)) over in_order = (unit, gap_ms, true, start_ms)
            and lead((unit, gap_ms, is_active, start_ms)) over in_order = (unit, gap_ms, true, end_ms)
            then case kind when 'pause' then 5 else 8 end
        else 6
    end as activity,
    start_ms,
    end_ms
from stretches
window in_order as (order by unit, start_ms, end_ms)
