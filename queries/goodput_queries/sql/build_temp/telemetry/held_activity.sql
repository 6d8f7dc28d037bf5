-- Telemetry activity of allocated units in time that no attempt's events cover.
-- materialised: inline, since one stage reads it
-- grain: unit, start_ms
-- activity: 2 active; no activity: 7 in the first idle_min_ms of a stretch within the hold (a pause), 3 after it,
--  1 in a single reading, or too short for the interval of the readings
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

activity as (
    select *
    from intermediate.int_gpu_activity
    where
        -- zones are known for constants: of days of history only these hours are read
        hour_ms > build_from_ms() - threshold('idle_min_ms')::bigint - one_hour_ms()
        and hour_ms < build_to_ms() + threshold('idle_min_ms')::bigint
),

-- runs of one reading that another run without activity touches: runs are split at hours
single as (
    select gpu_uuid, gpu_instance, start_ms, end_ms from activity where not is_active and end_ms <= first_reading_ms
),

touched as (
    select single.gpu_uuid, single.gpu_instance, single.start_ms
    from single
    inner join activity as before
        on single.gpu_uuid = before.gpu_uuid
        and single.gpu_instance = before.gpu_instance
        and single.start_ms = before.end_ms
        and not before.is_active
    union
    select single.gpu_uuid, single.gpu_instance, single.start_ms
    from single
    inner join activity as after
        on single.gpu_uuid = after.gpu_uuid
        and single.gpu_instance = after.gpu_instance
        and single.end_ms = after.start_ms
        and not after.is_active
),

-- has_more: there are other readings of the stretch than the run's first
seen as (
    select
        holders.unit,
        holders.hold,
        activity.is_active,
        greatest(activity.start_ms, holders.start_ms) as start_ms,
        least(activity.end_ms, holders.end_ms) as end_ms,
        activity.first_reading_ms,
        activity.end_ms > activity.first_reading_ms or touched.gpu_uuid is not null as has_more,
        activity.interval_ms
    from activity
    inner join holders using (gpu_uuid, gpu_instance)
    left join touched
        on activity.gpu_uuid = touched.gpu_uuid
        and activity.gpu_instance = touched.gpu_instance
        and activity.start_ms = touched.start_ms
    where activity.start_ms < holders.end_ms and activity.end_ms > holders.start_ms
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
        count_if(is_new) over (order by unit, start_ms rows unbounded preceding) as stretch
    from marked
),

pauses as (
    select stretch, min(start_ms) + threshold('idle_min_ms')::bigint as until_ms
    from numbered
    where not is_active
    group by stretch
),

-- by what is known when a pause ends: what follows changes nothing before
kinds as (
    select
        numbered.stretch,
        pauses.until_ms,
        inactivity_kind(
            count(distinct numbered.first_reading_ms) > 1 or bool_or(numbered.has_more),
            max(numbered.interval_ms),
            max(numbered.end_ms) >= pauses.until_ms
        ) as kind
    from numbered
    inner join pauses using (stretch)
    where numbered.start_ms < pauses.until_ms
    group by numbered.stretch, pauses.until_ms
)

select unit, hold, 2 as activity, start_ms, end_ms from numbered where is_active
union all
select
    unit,
    hold,
    case kinds.kind when 'short' then 1 when 'pause' then 7 else 3 end,
    start_ms,
    case kinds.kind when 'pause' then least(end_ms, kinds.until_ms) else end_ms end
from numbered
inner join kinds using (stretch)
where kinds.kind <> 'pause' or start_ms < kinds.until_ms
union all
select unit, hold, 3, greatest(start_ms, kinds.until_ms), end_ms
from numbered
inner join kinds using (stretch)
where kinds.kind = 'pause' and end_ms > kinds.until_ms
