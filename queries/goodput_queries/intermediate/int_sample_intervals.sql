-- How often each source read its GPUs, hour by hour.
-- grain: source, hour_ms
-- interval_ms: median distance (the lower one) of a GPU's readings that end in the hour
-- materialised: hourly, since it needs a pass over all readings
-- counting distances is far cheaper than sorting them
with counted as (
    select
        series.source,
        readings.ts_ms // 3600000 * 3600000 as hour_ms,
        readings.ts_ms - readings.previous_ms as distance_ms,
        count(*) as readings
    from temp.readings as readings
    inner join raw.reading_series as series using (series)
    where
        readings.ts_ms >= build_from_ms()
        and readings.ts_ms < build_to_ms()
        and readings.ts_ms - readings.previous_ms <= reading_margin_ms()
    group by all
),

ranked as (
    select
        *,
        sum(readings) over (
            partition by source, hour_ms order by distance_ms
            rows between unbounded preceding and current row
        ) as so_far,
        sum(readings) over (partition by source, hour_ms) as total
    from counted
)

select source, hour_ms, min(distance_ms) as interval_ms, max(total)::bigint as readings
from ranked
where so_far >= total / 2
group by source, hour_ms
