-- How often each source read its GPUs, hour by hour.
-- grain: source, hour_ms
-- interval_ms: median distance (the lower one) of a GPU's readings that end in the hour
-- materialised: hourly, since it needs a pass over all readings
with samples as (
    select source, hash(gpu_uuid, gpu_instance) as unit, ts_ms
    from staging.stg_gpu_samples
    where
        ts_ms >= build_from_ms() - 3600000
        and ts_ms < build_to_ms()
),

distances as (
    select
        source,
        ts_ms // 3600000 * 3600000 as hour_ms,
        ts_ms - lag(ts_ms) over (partition by unit, source order by ts_ms) as distance_ms
    from samples
),

-- counting distances is far cheaper than sorting them
counted as (
    select source, hour_ms, distance_ms, count(*) as readings
    from distances
    where
        hour_ms >= build_from_ms()
        and distance_ms is not null
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
