-- How often each source read its GPUs, hour by hour.
-- grain: source, hour_ms
-- interval_ms: median distance of a GPU's readings that end in the hour
-- materialised: hourly, since it needs a pass over all readings
with samples as (
    select source, gpu_uuid, gpu_instance, ts_ms
    from staging.stg_gpu_samples
    where
        ts_ms >= coalesce(getvariable('build_from_ms')::bigint, 0) - 3600000
        and ts_ms < coalesce(getvariable('build_to_ms')::bigint, 0)
),

distances as (
    select
        source,
        ts_ms // 3600000 * 3600000 as hour_ms,
        ts_ms - lag(ts_ms) over (partition by source, gpu_uuid, gpu_instance order by ts_ms) as distance_ms
    from samples
)

select source, hour_ms, median(distance_ms) as interval_ms, count(*) as samples
from distances
where hour_ms >= coalesce(getvariable('build_from_ms')::bigint, 0)
group by source, hour_ms
