-- What the telemetry says a GPU did: runs of equal state at sample resolution, cut at hours. A sample
-- covers back to the one before it of the same GPU and source, at most 2.5 median intervals.
-- grain: gpu_uuid, gpu_instance, start_ms
-- is_active: activity in every sample of the run, or in none
-- first_reading_ms: the first reading of the run
-- next_reading_ms: the first reading after the run: an idle run may have ended anywhere before it; null where
--  it came too late to tell (threshold gap_hole_reach)
-- interval_ms: how often the source read the GPU in this hour
-- materialised: hourly, since it needs a pass over all readings
with series as (
    select
        *,
        dense_rank() over (order by gpu_uuid, gpu_instance) as unit,
        count(*) over (partition by gpu_uuid, gpu_instance) > 1 as has_rivals
    from raw.reading_series
),

-- where two sources read a GPU the one with more readings in each ten minutes speaks for it
rivals as (
    select
        series.unit,
        series.series,
        series.source,
        readings.ts_ms,
        readings.is_active,
        count(*) over (partition by series.series, readings.ts_ms // 600000) as in_ten_minutes
    from temp.readings as readings
    inner join series using (series)
    where series.has_rivals
),

chosen as (
    select unit, series, ts_ms, is_active
    from rivals
    qualify rank() over (partition by unit, ts_ms // 600000 order by in_ten_minutes desc, source) = 1
),

in_order as (
    select series.unit, series.series, ts_ms, is_active, previous_ms, was_active, next_ms
    from temp.readings as readings
    inner join series using (series)
    where not series.has_rivals
    union all
    select
        *,
        lag(ts_ms) over chosen_in_order,
        lag(is_active) over chosen_in_order,
        lead(ts_ms) over chosen_in_order
    from chosen
    window chosen_in_order as (partition by unit order by ts_ms)
),

reached as (
    select
        in_order.*,
        in_order.ts_ms // 3600000 * 3600000 as hour_ms,
        intervals.interval_ms,
        series.first_ms,
        -- a lone reading has no interval and covers nothing
        in_order.ts_ms - cast(
            floor(coalesce(intervals.interval_ms, 0) * threshold('sample_reach')) as bigint
        ) as reached_ms
    from in_order
    inner join series using (series)
    left join intermediate.int_sample_intervals as intervals
        on series.source = intervals.source and in_order.ts_ms // 3600000 * 3600000 = intervals.hour_ms
),

-- readings at which a run begins, and the last of each unit
turns as (
    select
        unit,
        ts_ms,
        hour_ms,
        interval_ms,
        is_active,
        previous_ms,
        -- the first reading of all covers nothing
        case when ts_ms = first_ms then ts_ms else greatest(previous_ms, reached_ms) end as start_ms,
        next_ms is null as is_last,
        (
            was_active is distinct from is_active
            or reached_ms > previous_ms
            or previous_ms < hour_ms
        ) as is_start
    from reached
    where
        was_active is distinct from is_active
        or reached_ms > previous_ms
        or previous_ms < hour_ms
        or next_ms is null
),

runs as (
    select
        *,
        case
            when is_last then ts_ms
            else lead(case when is_start then previous_ms else ts_ms end) over unit_turns
        end as end_ms,
        case when not is_last then lead(case when is_start then ts_ms end) over unit_turns end
            as next_reading_ms
    from turns
    window unit_turns as (partition by unit order by ts_ms)
),

by_hour as (
    select
        unit,
        hour_ms,
        is_active,
        greatest(start_ms, hour_ms) as start_ms,
        end_ms,
        ts_ms as first_reading_ms,
        next_reading_ms,
        interval_ms
    from runs
    where is_start
    union all
    -- the first reading of an hour covers back into the one before; a reading covering more than that
    -- hour saw too little of it
    select
        unit,
        hour_ms - 3600000,
        is_active,
        greatest(start_ms, hour_ms - 3600000),
        hour_ms,
        ts_ms,
        ts_ms,
        interval_ms
    from turns
    where is_start and start_ms < hour_ms
)

select
    units.gpu_uuid,
    units.gpu_instance,
    by_hour.hour_ms,
    by_hour.is_active,
    by_hour.start_ms,
    by_hour.end_ms,
    by_hour.first_reading_ms,
    case
        when by_hour.next_reading_ms - by_hour.end_ms <= threshold('gap_hole_reach') * by_hour.interval_ms
            then by_hour.next_reading_ms
    end as next_reading_ms,
    by_hour.interval_ms
from by_hour
inner join (select distinct unit, gpu_uuid, gpu_instance from series) as units using (unit)
where
    by_hour.hour_ms >= build_from_ms()
    and by_hour.hour_ms < build_to_ms()
    and by_hour.end_ms > by_hour.start_ms
