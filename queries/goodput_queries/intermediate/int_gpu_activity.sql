-- What the telemetry says a GPU did: runs of equal state at sample resolution, cut at hours. A sample
-- covers back to the one before it of the same GPU and source, at most 2.5 median intervals.
-- grain: gpu_uuid, gpu_instance, start_ms
-- is_active: activity in every sample of the run, or in none
-- next_reading_ms: the first reading after the run: an idle run may have ended anywhere before it
-- interval_ms: how often the source read the GPU in this hour
-- materialised: hourly, since it needs a pass over all readings
with sources as (
    -- where two sources read a GPU the one with more readings in the hour speaks for it
    select
        source,
        gpu_uuid,
        gpu_instance,
        ts_ms // 3600000 * 3600000 as hour_ms,
        count(*) as samples,
        count(engine_active_ratio) > 0 as has_engine
    from staging.stg_gpu_samples
    where
        ts_ms >= coalesce(getvariable('build_from_ms')::bigint, 0) - 3600000
        and ts_ms < coalesce(getvariable('build_to_ms')::bigint, 0) + 3600000
    group by source, gpu_uuid, gpu_instance, hour_ms
    qualify row_number() over (
        partition by gpu_uuid, gpu_instance, hour_ms order by count(*) desc, source
    ) = 1
),

-- the hour after the range was built before or follows; its readings cover back into this one
intervals as (
    select source, hour_ms, interval_ms from intermediate.int_sample_intervals
    where hour_ms < coalesce(getvariable('build_to_ms')::bigint, 0)
),

next_intervals as (
    select
        source,
        ts_ms // 3600000 * 3600000 as hour_ms,
        ts_ms - lag(ts_ms) over (partition by source, gpu_uuid, gpu_instance order by ts_ms) as distance_ms
    from staging.stg_gpu_samples
    where
        ts_ms >= coalesce(getvariable('build_to_ms')::bigint, 0) - 3600000
        and ts_ms < coalesce(getvariable('build_to_ms')::bigint, 0) + 3600000
),

reaches as (
    select source, hour_ms, interval_ms * threshold('sample_reach') as reach_ms from intervals
    union all
    select source, hour_ms, median(distance_ms) * threshold('sample_reach')
    from next_intervals
    where hour_ms >= coalesce(getvariable('build_to_ms')::bigint, 0)
    group by source, hour_ms
),

readings as (
    select
        samples.source,
        samples.gpu_uuid,
        samples.gpu_instance,
        samples.ts_ms,
        case
            when sources.has_engine then samples.engine_active_ratio > threshold('idle_engine_ratio')
            else samples.gpu_busy_ratio > threshold('idle_busy_ratio')
        end as is_active,
        reaches.reach_ms
    from staging.stg_gpu_samples as samples
    inner join sources
        on samples.source = sources.source
        and samples.gpu_uuid = sources.gpu_uuid
        and samples.gpu_instance = sources.gpu_instance
        and samples.ts_ms // 3600000 * 3600000 = sources.hour_ms
    inner join reaches
        on samples.source = reaches.source
        and samples.ts_ms // 3600000 * 3600000 = reaches.hour_ms
    where
        samples.ts_ms >= coalesce(getvariable('build_from_ms')::bigint, 0) - 3600000
        and samples.ts_ms < coalesce(getvariable('build_to_ms')::bigint, 0) + 3600000
),

covering as (
    select
        gpu_uuid,
        gpu_instance,
        is_active,
        reach_ms / threshold('sample_reach') as interval_ms,
        ts_ms as end_ms,
        lead(ts_ms) over (partition by gpu_uuid, gpu_instance order by ts_ms) as next_reading_ms,
        lag(ts_ms) over (partition by gpu_uuid, gpu_instance order by ts_ms) as previous_ms,
        ts_ms - cast(floor(reach_ms) as bigint) as reached_ms
    from readings
    where is_active is not null
),

-- the first reading has none before it and covers nothing
bounded as (
    select * exclude (previous_ms, reached_ms), greatest(previous_ms, reached_ms) as start_ms
    from covering
    where previous_ms is not null and reached_ms is not null
),

by_hour as (
    select
        gpu_uuid,
        gpu_instance,
        is_active,
        interval_ms,
        next_reading_ms,
        start_ms,
        end_ms,
        end_ms // 3600000 * 3600000 as hour_ms
    from bounded
    where start_ms >= end_ms // 3600000 * 3600000
    union all
    -- a covering longer than an hour is no reading of what was in it, so two pieces are enough
    select
        gpu_uuid,
        gpu_instance,
        is_active,
        interval_ms,
        unnest([end_ms, next_reading_ms]),
        unnest([start_ms, end_ms // 3600000 * 3600000]),
        unnest([end_ms // 3600000 * 3600000, end_ms]),
        unnest([end_ms // 3600000 * 3600000 - 3600000, end_ms // 3600000 * 3600000])
    from bounded
    where start_ms < end_ms // 3600000 * 3600000
),

marked as (
    select
        *,
        (is_active, start_ms) is distinct from lag((is_active, end_ms)) over hour_of_gpu as is_new
    from by_hour
    where
        hour_ms >= coalesce(getvariable('build_from_ms')::bigint, 0)
        and hour_ms < coalesce(getvariable('build_to_ms')::bigint, 0)
        and end_ms > start_ms
    window hour_of_gpu as (partition by gpu_uuid, gpu_instance, hour_ms order by start_ms)
),

numbered as (
    select
        *,
        sum(is_new::integer) over (
            partition by gpu_uuid, gpu_instance, hour_ms order by start_ms
            rows between unbounded preceding and current row
        ) as island
    from marked
)

select
    gpu_uuid,
    gpu_instance,
    hour_ms,
    any_value(is_active) as is_active,
    min(start_ms) as start_ms,
    max(end_ms) as end_ms,
    arg_max(next_reading_ms, end_ms) as next_reading_ms,
    max(interval_ms) as interval_ms
from numbered
group by gpu_uuid, gpu_instance, hour_ms, island
