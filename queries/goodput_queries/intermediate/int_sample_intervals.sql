-- How often each source read its GPUs, hour by hour.
-- grain: source, hour_ms
-- interval_ms: median distance (the lower one) of a GPU's readings that end in the hour
-- materialised: hourly, since it needs a pass over all readings
-- aside: since it is made of readings alone
with tangled as (
    select series from temp.pass_series where is_tangled
),

-- counting distances is far cheaper than sorting them
counted as (
    select
        reader,
        ts_ms // 3600000 * 3600000 as hour_ms,
        ts_ms - before_ms as distance_ms,
        count(*) as readings
    from temp.readings
    where not is_begin and series not in (from tangled)
    group by all
    union all
    select reader, first_ms // 3600000 * 3600000, first_ms - previous_ms, count(*)
    from temp.reading_runs
    where not is_tangled
    group by all
    union all
    select reader, ts_ms // 3600000 * 3600000, distance_ms, count(*)
    from (
        select reader, ts_ms, ts_ms - lag(ts_ms) over (partition by series order by ts_ms) as distance_ms
        from temp.entangled_readings
        where series in (from tangled)
    )
    group by all
),

of_hours as (
    select reader, hour_ms, distance_ms, sum(readings)::bigint as readings
    from counted
    where hour_ms >= build_from_ms() and hour_ms < build_to_ms() and distance_ms <= reading_margin_ms()
    group by all
),

ranked as (
    select
        *,
        sum(readings) over (
            partition by reader, hour_ms order by distance_ms
            rows between unbounded preceding and current row
        ) as so_far,
        sum(readings) over (partition by reader, hour_ms) as total
    from of_hours
)

select readers.source, ranked.hour_ms, min(ranked.distance_ms) as interval_ms, max(ranked.total)::bigint as readings
from ranked
inner join (select distinct source, reader from temp.pass_series) as readers using (reader)
where ranked.so_far >= ranked.total / 2
group by readers.source, ranked.hour_ms
