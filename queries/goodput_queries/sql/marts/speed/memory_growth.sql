-- GPUs whose used memory grows through an attempt of the scope's runs, with the time until it is full. By the ten-minute
-- means after the first twenty minutes: the growth is the median difference of means half of the attempt apart. Listed is
-- what rises nearly always, still rises in the last quarter, and by more than 1 % of the memory. An attempt shorter than
-- threshold memory_growth_windows has to show as much more as it is shorter, and a rise in every ten minutes: caches of
-- allocators fill in steps.
-- grain: attempt_key, gpu_uuid, gpu_instance
-- access: team
-- skip_if_empty: intermediate.int_gpu_metrics
-- windows: number of ten minutes
-- growth_bytes_per_h; used_bytes: at the end; memory_bytes: of the GPU; null: not known
-- time_to_full_s: at that rate; null: the memory of the GPU is not known
with attempts as (
    select
        attempts.run_key,
        attempts.attempt,
        attempts.attempt_key,
        attempts.end_ms is null as is_running,
        holds.node,
        holds.gpu_uuid,
        holds.gpu_instance,
        greatest(attempts.start_ms, holds.start_ms) + 1200000 as start_ms,
        least(coalesce(attempts.end_ms, clusters.as_of_ms), coalesce(holds.end_ms, clusters.as_of_ms)) as end_ms
    from intermediate.int_attempts as attempts
    inner join intermediate.int_clusters as clusters using (cluster)
    inner join intermediate.int_holds as holds using (job_run_key)
    where
        in_window(attempts.start_ms, attempts.end_ms)
        and of_owner(attempts.team, attempts.user_name, attempts.run_key, attempts.partition)
        and in_place(attempts.cluster, holds.node, holds.gpu_uuid, null)
),

-- grouped by a number: four names take several times as long
long as materialized (
    select *, (row_number() over ())::integer as number
    from attempts
    where end_ms - start_ms >= ten_minutes_ms() * threshold('memory_growth_least_windows')
),

memories as (
    select gpu_uuid, max(memory_bytes) as memory_bytes from staging.stg_gpus group by gpu_uuid
),

-- most memory stays as it is: what follows looks at the rest
changes as (
    select
        attempts.number,
        any_value(attempts.gpu_uuid) as gpu_uuid,
        min(metrics.memory_used_bytes.mean) as least_bytes,
        max(metrics.memory_used_bytes.mean) as most_bytes
    from long as attempts
    inner join intermediate.int_gpu_metrics as metrics
        on metrics.gpu_uuid = attempts.gpu_uuid
        and metrics.gpu_instance = attempts.gpu_instance
        and metrics.start_ms >= attempts.start_ms
        and metrics.start_ms + ten_minutes_ms() <= attempts.end_ms
    where metrics.memory_used_bytes.n > 0
    group by attempts.number
    having count(*) >= threshold('memory_growth_least_windows')
),

growing as (
    select long.* exclude (number)
    from long
    inner join changes using (number)
    left join memories on changes.gpu_uuid = memories.gpu_uuid
    where
        changes.most_bytes - changes.least_bytes
        >= threshold('memory_growth_share') * coalesce(memories.memory_bytes, changes.least_bytes)
),

readings as (
    select
        attempts.attempt_key,
        metrics.gpu_uuid,
        metrics.gpu_instance,
        metrics.start_ms,
        arg_max(metrics.memory_used_bytes.mean, metrics.samples) as used_bytes
    from intermediate.int_gpu_metrics as metrics
    inner join growing as attempts
        on metrics.gpu_uuid = attempts.gpu_uuid
        and metrics.gpu_instance = attempts.gpu_instance
        and metrics.start_ms >= attempts.start_ms
        and metrics.start_ms + ten_minutes_ms() <= attempts.end_ms
    where metrics.memory_used_bytes.n > 0
    group by all
),

numbered as (
    select
        *,
        row_number() over (partition by attempt_key, gpu_uuid, gpu_instance order by start_ms) as number,
        count(*) over (partition by attempt_key, gpu_uuid, gpu_instance) as windows,
        used_bytes > lag(used_bytes) over (
            partition by attempt_key, gpu_uuid, gpu_instance order by start_ms
        ) as is_rise
    from readings
),

differences as (
    select
        earlier.* exclude (start_ms, used_bytes, is_rise),
        later.used_bytes - earlier.used_bytes as change_bytes,
        (later.used_bytes - earlier.used_bytes) / (later.start_ms - earlier.start_ms) as bytes_per_ms
    from numbered as earlier
    inner join numbered as later
        on earlier.attempt_key = later.attempt_key
        and earlier.gpu_uuid = later.gpu_uuid
        and earlier.gpu_instance = later.gpu_instance
        and earlier.number + earlier.windows // 2 = later.number
    where earlier.windows >= threshold('memory_growth_least_windows')
),

slopes as (
    select
        attempt_key,
        gpu_uuid,
        gpu_instance,
        median(bytes_per_ms) as bytes_per_ms,
        count(*) filter (where change_bytes > 0) / count(*) as rising_ratio
    from differences
    group by attempt_key, gpu_uuid, gpu_instance
),

quarters as (
    select
        attempt_key,
        gpu_uuid,
        gpu_instance,
        any_value(windows) as windows,
        count(*) filter (where is_rise) as rises,
        max(start_ms) + ten_minutes_ms() as last_ms,
        arg_max(used_bytes, number) as used_bytes,
        max(used_bytes) - min(used_bytes) as range_bytes,
        avg(used_bytes) filter (where number > windows - windows // 4) as last_bytes,
        avg(used_bytes) filter (where number > windows - 2 * (windows // 4) and number <= windows - windows // 4)
            as before_bytes,
        ten_minutes_ms() * any_value(windows // 4) as quarter_ms
    from numbered
    group by attempt_key, gpu_uuid, gpu_instance
)

select
    attempts.* exclude (start_ms, end_ms),
    quarters.windows,
    slopes.bytes_per_ms * one_hour_ms() as growth_bytes_per_h,
    quarters.used_bytes,
    case when attempts.gpu_instance = '' then memories.memory_bytes end as memory_bytes,
    from_ms(quarters.last_ms) as last_at,
    case
        when attempts.gpu_instance = '' and memories.memory_bytes is not null
            then greatest(memories.memory_bytes - quarters.used_bytes, 0) / slopes.bytes_per_ms / 1000
    end as time_to_full_s
from slopes
inner join quarters using (attempt_key, gpu_uuid, gpu_instance)
inner join attempts using (attempt_key, gpu_uuid, gpu_instance)
left join memories using (gpu_uuid)
where
    slopes.bytes_per_ms > 0
    and slopes.rising_ratio >= threshold('memory_growth_rising')
    and quarters.range_bytes
        >= threshold('memory_growth_share') * coalesce(memories.memory_bytes, quarters.used_bytes)
        * greatest(1, threshold('memory_growth_windows') / quarters.windows)
    and (quarters.windows >= threshold('memory_growth_windows') or quarters.rises = quarters.windows - 1)
    and (quarters.last_bytes - quarters.before_bytes) / quarters.quarter_ms >= slopes.bytes_per_ms / 2
