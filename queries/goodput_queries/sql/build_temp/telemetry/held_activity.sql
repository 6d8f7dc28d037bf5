-- Telemetry activity of allocated units in time that no attempt's events cover.
-- inline: asked once
-- grain: unit, start_ms
-- activity: 1 idle for less than the threshold within the hold, 2 active, 3 idle for longer
with holders as materialized (
    select
        holds.unit,
        holds.hold,
        units.gpu_uuid,
        read_instance(units.gpu_instance) as gpu_instance,
        holds.start_ms,
        holds.end_ms
    from temp.holds as holds
    inner join temp.units as units using (unit)
    semi join temp.uncovered_holds as gaps on holds.unit = gaps.unit and holds.hold = gaps.hold
),

seen as (
    select
        holders.unit,
        holders.hold,
        activity.is_active,
        greatest(activity.start_ms, holders.start_ms) as start_ms,
        least(activity.end_ms, holders.end_ms) as end_ms
    from intermediate.int_gpu_activity as activity
    inner join holders using (gpu_uuid, gpu_instance)
    where
        activity.start_ms < holders.end_ms
        and activity.end_ms > holders.start_ms
        -- zones are known for constants: of days of history only these hours are read
        and activity.hour_ms > build_from_ms() - threshold('idle_min_ms')::bigint - 3600000
        and activity.hour_ms < build_to_ms() + threshold('idle_min_ms')::bigint
),

-- one order of all is cheaper than one of each of many units
marked as (
    select
        *,
        is_active or (unit, hold, start_ms) is distinct from lag(
            case when not is_active then (unit, hold, end_ms) end
        ) over (order by unit, start_ms) as is_new
    from seen
),

numbered as (
    select
        *,
        count_if(is_new) over (
            order by unit, start_ms rows between unbounded preceding and current row
        ) as stretch
    from marked
),

long_stretches as (
    select stretch
    from numbered
    group by stretch
    having sum(end_ms - start_ms) >= threshold('idle_min_ms')
)

select
    unit,
    hold,
    case
        when is_active then 2
        when stretch in (from long_stretches) then 3
        else 1
    end as activity,
    start_ms,
    end_ms
from numbered
