-- What the telemetry says a GPU did: runs of equal state at sample resolution, cut at hours. A sample
-- covers back to the one before it of the same GPU and source, at most 2.5 median intervals.
-- One sort over the readings finds those at which something changes; all else is done on these few.
-- grain: gpu_uuid, gpu_instance, start_ms
-- is_active: activity in every sample of the run, or in none
-- first_reading_ms: the first reading of the run
-- next_reading_ms: the first reading after the run: an idle run may have ended anywhere before it; null where
--  it came too late to tell (threshold gap_hole_reach)
-- interval_ms: how often the source read the GPU in this hour
-- materialised: hourly, since it needs a pass over all readings
with samples as (
    select
        source,
        gpu_uuid,
        gpu_instance,
        ts_ms,
        ts_ms // 3600000 * 3600000 as hour_ms,
        ts_ms // 600000 as ten_minutes,
        engine_active_ratio,
        gpu_busy_ratio
    from staging.stg_gpu_samples
    where
        ts_ms >= build_from_ms() - 3600000
        and ts_ms < build_to_ms() + 3600000
),

sources as (
    -- where two sources read a GPU the better one in each ten minutes speaks for it
    select
        source,
        gpu_uuid,
        gpu_instance,
        hour_ms,
        ten_minutes,
        count(engine_active_ratio) > 0 as has_engine
    from samples
    where coalesce(engine_active_ratio, gpu_busy_ratio) is not null
    group by source, gpu_uuid, gpu_instance, hour_ms, ten_minutes
    qualify row_number() over (
        partition by gpu_uuid, gpu_instance, ten_minutes
        order by count(engine_active_ratio) desc, count(*) desc, source
    ) = 1
),

units as (
    select gpu_uuid, gpu_instance, row_number() over (order by gpu_uuid, gpu_instance) as unit
    from (select distinct gpu_uuid, gpu_instance from sources)
),

readings as (
    select
        units.unit,
        samples.ts_ms,
        samples.hour_ms,
        intervals.interval_ms,
        case
            when sources.has_engine then samples.engine_active_ratio > threshold('idle_engine_ratio')
            else samples.gpu_busy_ratio > threshold('idle_busy_ratio')
        end as is_active
    from samples
    inner join sources using (source, gpu_uuid, gpu_instance, hour_ms, ten_minutes)
    inner join units using (gpu_uuid, gpu_instance)
    left join intermediate.int_sample_intervals as intervals using (source, hour_ms)
    where
        case when sources.has_engine then samples.engine_active_ratio else samples.gpu_busy_ratio end
        is not null
),

in_order as (
    select
        *,
        lag(ts_ms) over unit_readings as previous_ms,
        lag(is_active) over unit_readings as was_active,
        lead(ts_ms) over unit_readings is null as is_last,
        -- a lone reading has no interval and covers nothing
        ts_ms - cast(floor(coalesce(interval_ms, 0) * threshold('sample_reach')) as bigint) as reached_ms
    from readings
    window unit_readings as (partition by unit order by ts_ms)
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
        -- the first reading of all covers nothing, nor does one after more than an hour of silence
        case
            when previous_ms >= hour_ms - 3600000 then greatest(previous_ms, reached_ms)
            else ts_ms
        end as start_ms,
        is_last,
        (
            was_active is distinct from is_active
            or reached_ms > previous_ms
            or previous_ms < hour_ms
        ) as is_start
    from in_order
    where
        was_active is distinct from is_active
        or reached_ms > previous_ms
        or previous_ms < hour_ms
        or is_last
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
inner join units using (unit)
where
    by_hour.hour_ms >= build_from_ms()
    and by_hour.hour_ms < build_to_ms()
    and by_hour.end_ms > by_hour.start_ms
