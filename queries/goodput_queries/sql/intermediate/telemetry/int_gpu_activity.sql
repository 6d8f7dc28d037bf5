-- GPU activity by telemetry: runs of equal state at sample resolution, split at hours. A sample covers the time back to
-- the previous one of its series, at most 2.5 of the series' intervals in the hour it covers.
-- grain: gpu_uuid, gpu_instance, start_ms
-- is_active: activity in every sample of the run, or in none
-- first_reading_ms: the first reading of the run
-- next_reading_ms: the first reading after the run: an idle run may have ended anywhere before it; null where
--  it came too late to decide (threshold gap_hole_reach)
-- interval_ms: how often the series was read in this hour
-- materialised: hourly, since it needs a pass over all readings
with interleaved as (
    select
        series.unit,
        series.source,
        series.series,
        readings.ts_ms,
        readings.is_active,
        count(*) over (partition by series.series, readings.ts_ms // ten_minutes_ms()) as in_ten_minutes
    from temp.interleaved_readings as readings
    inner join temp.pass_series as series using (series)
),

-- where two sources read a GPU the one with more readings in each ten minutes is used
chosen as (
    select unit, series, ts_ms, is_active
    from interleaved
    qualify rank() over (partition by unit, ts_ms // ten_minutes_ms() order by in_ten_minutes desc, source) = 1
),

reaches as (
    select coalesce(min(floor(interval_ms * threshold('sample_reach'))), 0) as least_ms
    from intermediate.int_sample_intervals
    where hour_ms >= build_from_ms() and hour_ms < build_to_ms()
),

-- most readings turn nothing: they are left out by the shortest reach before anything else is asked of them
candidates as (
    select series, ts_ms, readings.is_active, before_ms as previous_ms, was_active
    from temp.readings as readings
    cross join reaches
    where
        not is_begin
        and (
            is_active <> was_active
            or ts_ms - before_ms > least_ms
            or before_ms // one_hour_ms() < ts_ms // one_hour_ms()
        )
    union all
    select series, first_ms, first_active, previous_ms, was_active
    from temp.reading_runs
),

in_order as (
    select unit, series.series, ts_ms, is_active, previous_ms, was_active
    from candidates
    inner join temp.pass_series as series using (series)
    where not series.has_rivals and not series.is_tangled
    union all
    select
        unit, series, ts_ms, is_active,
        lag(ts_ms) over chosen_in_order,
        lag(is_active) over chosen_in_order
    from chosen
    window chosen_in_order as (partition by unit order by ts_ms)
),

last_readings as (
    select series.unit, max(runs.last_ms) as ts_ms
    from temp.reading_runs as runs
    inner join temp.pass_series as series using (series)
    where not series.has_rivals and not series.is_tangled
    group by series.unit
    union all
    select unit, max(ts_ms) from chosen group by unit
),

reached as (
    select
        in_order.*,
        in_order.ts_ms // one_hour_ms() * one_hour_ms() as hour_ms,
        intervals.interval_ms,
        series.first_ms,
        -- a lone reading has no interval and covers nothing
        in_order.ts_ms - cast(
            floor(coalesce(intervals.interval_ms, 0) * threshold('sample_reach')) as bigint
        ) as reached_ms
    from in_order
    inner join temp.pass_series as series using (series)
    left join intermediate.int_sample_intervals as intervals
        on in_order.series = intervals.series and in_order.ts_ms // one_hour_ms() * one_hour_ms() = intervals.hour_ms
),

-- readings at which a run begins, and the last of each unit
turns as (
    select
        * exclude (was_active, reached_ms),
        -- the first reading of all covers nothing
        case when ts_ms = first_ms then ts_ms else greatest(previous_ms, reached_ms) end as start_ms,
        false as is_last
    from reached
    where
        ts_ms >= build_from_ms()
        and (
            was_active is distinct from is_active
            or reached_ms > previous_ms
            or previous_ms < hour_ms
        )
    union all by name
    select unit, ts_ms, true as is_last from last_readings
),

-- the last turn of a unit is its last reading; one order of all is cheaper than one of each of many units
runs as (
    select
        *,
        lead(case when is_last then ts_ms else previous_ms end) over in_order as end_ms,
        lead(case when not is_last then ts_ms end) over in_order as next_reading_ms
    from turns
    window in_order as (order by unit, ts_ms, is_last)
),

-- The first reading of an hour covers back into the one before, as far as that hour's own interval reaches: what is
-- known of an hour hangs on no other hour's readings. A reading covering more than that hour saw too little of it.
before_turn as (
    select
        turns.unit,
        turns.hour_ms - one_hour_ms() as hour_ms,
        turns.is_active,
        turns.ts_ms,
        intervals.interval_ms,
        greatest(
            turns.previous_ms,
            turns.hour_ms - one_hour_ms(),
            turns.ts_ms - cast(
                floor(coalesce(intervals.interval_ms, 0) * threshold('sample_reach')) as bigint
            )
        ) as start_ms
    from turns
    left join intermediate.int_sample_intervals as intervals
        on turns.series = intervals.series and turns.hour_ms - one_hour_ms() = intervals.hour_ms
    where not turns.is_last and turns.previous_ms < turns.hour_ms and turns.ts_ms > turns.first_ms
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
    where not is_last
    union all
    select unit, hour_ms, is_active, start_ms, hour_ms + one_hour_ms(), ts_ms, ts_ms, interval_ms
    from before_turn
    where start_ms < hour_ms + one_hour_ms()
)

select
    units.gpu_uuid,
    units.gpu_instance,
    by_hour.* exclude (unit, next_reading_ms),
    case
        when by_hour.next_reading_ms - by_hour.end_ms <= threshold('gap_hole_reach') * by_hour.interval_ms
            then by_hour.next_reading_ms
    end as next_reading_ms
from by_hour
inner join (select distinct unit, gpu_uuid, gpu_instance from temp.pass_series) as units using (unit)
where
    by_hour.hour_ms >= build_from_ms()
    and by_hour.hour_ms < build_to_ms()
    and by_hour.end_ms > by_hour.start_ms
