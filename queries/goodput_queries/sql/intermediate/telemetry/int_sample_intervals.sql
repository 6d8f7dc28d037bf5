-- Sampling interval of each series (a GPU or instance, and its source) by hour.
-- grain: series, hour_ms
-- interval_ms: median distance (the lower one) of the readings that end in the hour. A lone one may be a hole: an hour
--  with fewer than two takes the least of it and of the distances inside the quarter hours before and after
-- materialised: hourly, since it needs a pass over all readings
with tangled as (
    select series from temp.pass_series where is_tangled
),

distances as (
    select series, ts_ms, before_ms
    from temp.readings
    where not is_begin and series not in (from tangled)
    union all
    select series, first_ms, previous_ms
    from temp.reading_runs
    where not is_tangled
    union all
    select series, ts_ms, lag(ts_ms) over (partition by series order by ts_ms)
    from temp.interleaved_readings
    where series in (from tangled)
),

of_hours as materialized (
    select
        series,
        hour_ms,
        count(*) as n,
        quantile_disc(ts_ms - before_ms, 0.5) as interval_ms,
        -- not medians, since those are asked for few hours
        min(case when before_ms >= hour_ms and ts_ms < hour_ms + 900000 then ts_ms - before_ms end)
            as first_quarter_ms,
        min(case when before_ms >= hour_ms + 2700000 then ts_ms - before_ms end) as last_quarter_ms
    from (select *, ts_ms // one_hour_ms() * one_hour_ms() as hour_ms from distances)
    where
        ts_ms >= build_from_ms() - 900000
        and ts_ms < build_to_ms() + 900000
        and ts_ms - before_ms <= reading_margin_ms()
    group by series, hour_ms
),

sparse as (
    select series, hour_ms, interval_ms from of_hours where n < 2
    union all
    -- the first reading after an hour without one covers back into it
    select after_it.series, after_it.hour_ms - one_hour_ms(), null
    from of_hours as after_it
    anti join of_hours on after_it.series = of_hours.series and after_it.hour_ms - one_hour_ms() = of_hours.hour_ms
    where after_it.first_quarter_ms is not null
),

of_all_hours as (
    select series, hour_ms, interval_ms from of_hours where n >= 2
    union all
    select
        sparse.series,
        sparse.hour_ms,
        least(sparse.interval_ms, before_it.last_quarter_ms, after_it.first_quarter_ms)
    from sparse
    left join of_hours as before_it
        on sparse.series = before_it.series and sparse.hour_ms - one_hour_ms() = before_it.hour_ms
    left join of_hours as after_it
        on sparse.series = after_it.series and sparse.hour_ms + one_hour_ms() = after_it.hour_ms
)

select series, hour_ms, interval_ms
from of_all_hours
where hour_ms >= build_from_ms() and hour_ms < build_to_ms()
