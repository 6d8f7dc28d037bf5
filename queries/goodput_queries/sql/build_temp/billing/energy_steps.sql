-- What GPUs used between two readings of their counters, by the hours that this covers; in hours of which a source has no
-- counter, the integral of its power readings.
-- A counter that resets (the driver was reloaded) counts from 0. Energy is spread evenly between two readings; between
-- readings too far apart it is unknown.
-- grain: gpu_uuid, start_ms, hour_ms
-- start_ms, end_ms: between which readings
-- energy_mj: millijoules over that time; is_integrated: from power
with holds as (
    select
        holds.gpu_uuid,
        greatest(holds.start_ms, build_from_ms()) as start_ms,
        least(coalesce(holds.end_ms, clusters.as_of_ms), build_to_ms()) as end_ms,
        holds.end_ms as known_end_ms
    from intermediate.int_holds as holds
    inner join intermediate.int_clusters as clusters using (cluster)
    where holds.start_ms < build_to_ms() and (holds.end_ms is null or holds.end_ms > build_from_ms())
),

-- hours in which a GPU changes hands are cut there: of each piece the first and the last reading count
changes as (
    select distinct gpu_uuid, at_ms // one_hour_ms() * one_hour_ms() as hour_ms, at_ms
    from (select gpu_uuid, unnest([start_ms, known_end_ms]) as at_ms from holds where start_ms < end_ms)
    where at_ms % one_hour_ms() <> 0 and at_ms < build_to_ms()
),

pieces as (
    select
        hash(gpu_uuid, hour_ms) as gpu_hour,
        at_ms as start_ms,
        lead(at_ms, 1, hour_ms + one_hour_ms()) over (partition by gpu_uuid, hour_ms order by at_ms) as end_ms
    from (
        select * from changes
        union all
        select distinct gpu_uuid, hour_ms, hour_ms from changes
    )
),

-- hashes instead of names: numbers join and sort faster
samples as (
    select
        hash(source, gpu_uuid, gpu_instance) as series,
        hash(gpu_uuid, ts_ms // one_hour_ms() * one_hour_ms()) as gpu_hour,
        ts_ms,
        ts_ms // one_hour_ms() * one_hour_ms() as hour_ms,
        energy_j,
        power_w
    from staging.stg_gpu_samples
    where
        ts >= from_ms(build_from_ms() - reading_margin_ms())
        and ts < from_ms(build_to_ms() + reading_margin_ms())
        and gpu_instance = ''
        and (energy_j is not null or power_w between 0 and 1e4)
),

counters as (
    select series, gpu_hour, ts_ms, hour_ms, 0 as stretch, energy_j
    from samples
    where energy_j between 0 and 1e13  -- 10 kW for 30 years: more is no counter
),

powers as (
    select
        *,
        ts_ms - lag(ts_ms) over by_series as ms,
        (power_w + lag(power_w) over by_series) / 2 as mean_w
    from samples
    where energy_j is null
    window by_series as (partition by series order by ts_ms)
),

-- power adds up to a counter that begins again (a stretch) where readings are further apart than ten minutes
readings as (
    select * from counters
    union all
    select
        series, gpu_hour, ts_ms, hour_ms,
        1 + count(*) filter (where ms > ten_minutes_ms()) over so_far,
        sum(case when ms <= ten_minutes_ms() then round(mean_w * ms) else 0 end) over so_far / 1000
    from powers
    window so_far as (partition by series order by ts_ms)
),

ends as (
    select
        readings.series,
        readings.stretch,
        readings.hour_ms,
        min(readings.ts_ms) as first_ms,
        arg_min(readings.energy_j, readings.ts_ms) as first_j,
        max(readings.ts_ms) as last_ms,
        arg_max(readings.energy_j, readings.ts_ms) as last_j,
        max(readings.energy_j) as most_j
    from readings
    left join pieces
        on readings.gpu_hour = pieces.gpu_hour
        and readings.ts_ms >= pieces.start_ms
        and readings.ts_ms < pieces.end_ms
    group by readings.series, readings.stretch, readings.hour_ms, pieces.start_ms
),

-- within a piece the counters are complete, however few readings there are
points as (
    select series, stretch, first_ms as ts_ms, first_j as energy_j, null as gain_j from ends
    union all
    select
        series, stretch, last_ms, last_j,
        most_j - first_j + case when last_j < most_j then last_j else 0 end
    from ends
    where last_ms > first_ms
),

in_order as (
    select
        *,
        lag(series) over by_series as before_series,
        lag(stretch) over by_series as before_stretch,
        lag(ts_ms) over by_series as before_ms,
        lag(energy_j) over by_series as before_j
    from points
    -- one order of all is cheaper than one of each of many series
    window by_series as (order by series, stretch, ts_ms)
),

steps as (
    select
        series,
        stretch > 0 as is_integrated,
        before_ms as start_ms,
        ts_ms as end_ms,
        gain_j is not null as is_within,
        coalesce(gain_j, energy_j - case when energy_j >= before_j then before_j else 0 end) as energy_j
    from in_order
    where before_series = series and before_stretch = stretch
),

-- more than 10 kW is no GPU: such a jump is not believed
known as (
    select
        * exclude (is_within, energy_j),
        cast(round(1000 * energy_j) as bigint) as energy_mj
    from steps
    where
        end_ms > start_ms
        and (is_within or end_ms - start_ms <= reading_margin_ms())
        and energy_j <= 10.0 * (end_ms - start_ms)
),

by_hour as (
    select
        *,
        unnest(range(start_ms // one_hour_ms(), (end_ms - 1) // one_hour_ms() + 1)) * one_hour_ms() as hour_ms
    from known
),

in_hours as (
    select by_hour.*, series.source, series.gpu_uuid, series.has_rivals
    from by_hour
    inner join (
        select *, count(*) over (partition by gpu_uuid, gpu_instance) > 1 as has_rivals from state.reading_series
    ) as series using (series)
    where
        by_hour.hour_ms >= build_from_ms()
        and by_hour.hour_ms < build_to_ms()
        -- a counter anywhere in the hour: of these hours alone a build has all readings
        and (
            not by_hour.is_integrated
            or (by_hour.series, by_hour.hour_ms) not in (select series, hour_ms from ends where stretch = 0)
        )
)

-- of several sources one with a counter is used for the GPU and hour, of these the one with the most readings
select gpu_uuid, hour_ms, start_ms, end_ms, energy_mj, is_integrated
from in_hours
where not has_rivals
union all
select gpu_uuid, hour_ms, start_ms, end_ms, energy_mj, is_integrated
from in_hours
left join intermediate.int_sample_intervals as intervals using (series, hour_ms)
where has_rivals
qualify rank() over (
    partition by gpu_uuid, hour_ms order by is_integrated, intervals.interval_ms nulls last, source
) = 1
