-- Steps during which a GPU of the gang was held back: a slowdown reason (not the power cap alone) in at
-- least half of its samples inside the step, else in the one that covers the step.
-- Covers all GPUs that the attempt holds, since in many jobs one rank reports for all.
-- grain: attempt_key, step, gpu_uuid
-- skip_if_empty: temp.int_train_steps where exists (from intermediate.int_slowed_readings)
with lives as (
    select attempt_key, min(start_ms) as from_ms, max(end_ms) as to_ms
    from temp.int_train_steps
    group by attempt_key
),

-- only while the attempt reports steps: a GPU has many attempts one after another
gpus as (
    select attempt_key, gpu_uuid, from_ms, to_ms
    from (
        select attempt_key, gpu_uuid from temp.int_rank_gpus
        union
        select attempts.attempt_key, holds.gpu_uuid
        from temp.int_attempts as attempts
        inner join intermediate.int_holds as holds using (job_run_key)
    )
    inner join lives using (attempt_key)
    semi join intermediate.int_slowed_readings using (gpu_uuid)
),

-- two sources may read a GPU at one moment
readings as (
    select gpu_uuid, hour_ms, ts_ms, bool_or(is_slowed) as is_slowed
    from intermediate.int_slowed_readings
    where gpu_uuid in (select gpu_uuid from gpus)
    group by all
),

spaced as (
    select *, ts_ms - lag(ts_ms) over (partition by gpu_uuid order by ts_ms) as gap_ms
    from readings
),

reaching as (
    select
        gpu_uuid,
        ts_ms,
        is_slowed,
        ts_ms - threshold('sample_reach') * median(gap_ms) over (partition by gpu_uuid, hour_ms) as reach_ms
    from spaced
),

seen as (
    select
        gpus.attempt_key,
        steps.step,
        gpus.gpu_uuid,
        count_if(readings.is_slowed) as slowed,
        count(*) as samples
    from readings
    inner join gpus
        on readings.gpu_uuid = gpus.gpu_uuid and readings.ts_ms >= gpus.from_ms and readings.ts_ms < gpus.to_ms
    asof join temp.int_train_steps as steps
        on gpus.attempt_key = steps.attempt_key and readings.ts_ms >= steps.start_ms
    where readings.ts_ms < steps.end_ms
    group by gpus.attempt_key, steps.step, gpus.gpu_uuid
),

-- materialized: steps joined with hours before GPUs are a row for each step and GPU of that hour
hours as materialized (
    select gpus.attempt_key, gpus.gpu_uuid, hours.hour_ms
    from (select distinct gpu_uuid, hour_ms from readings) as hours
    inner join gpus
        on hours.gpu_uuid = gpus.gpu_uuid
        and hours.hour_ms between gpus.from_ms // one_hour_ms() * one_hour_ms() and gpus.to_ms
),

-- a sample covers the time back to the previous one: a step without a sample uses the next one
unseen as (
    select hours.attempt_key, steps.step, hours.gpu_uuid, steps.start_ms, steps.end_ms
    from hours
    inner join temp.int_train_steps as steps
        on hours.attempt_key = steps.attempt_key and hours.hour_ms = steps.end_ms // one_hour_ms() * one_hour_ms()
    anti join seen
        on hours.attempt_key = seen.attempt_key and steps.step = seen.step and hours.gpu_uuid = seen.gpu_uuid
)

select attempt_key, step, gpu_uuid
from seen
where slowed > 0 and slowed >= threshold('throttle_sample_share') * samples
union all
select unseen.attempt_key, unseen.step, unseen.gpu_uuid
from unseen
asof join reaching
    on unseen.gpu_uuid = reaching.gpu_uuid and unseen.end_ms <= reaching.ts_ms
where reaching.is_slowed and unseen.start_ms >= reaching.reach_ms
