-- Steps during which a GPU of the gang was held back: a slowdown reason (not the power cap alone) in at
-- least half of its samples inside the step, else in the one that covers the step.
-- Covers all GPUs that the attempt holds, since in many jobs one rank reports for all.
-- grain: attempt_key, step, gpu_uuid
-- skip_if_empty: temp.int_train_steps where exists (from intermediate.int_slowed_readings)
with gpus as (
    select attempt_key, gpu_uuid from temp.int_rank_gpus where gpu_uuid is not null
    union
    select attempts.attempt_key, holds.gpu_uuid
    from temp.int_attempts as attempts
    inner join intermediate.int_holds as holds using (job_run_key)
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
    inner join gpus using (gpu_uuid)
    asof join temp.int_train_steps as steps
        on gpus.attempt_key = steps.attempt_key and readings.ts_ms >= steps.start_ms
    where readings.ts_ms < steps.end_ms
    group by gpus.attempt_key, steps.step, gpus.gpu_uuid
),

-- a sample covers the time back to the previous one: a step without a sample uses the next one
unseen as (
    select gpus.attempt_key, steps.step, gpus.gpu_uuid, steps.start_ms, steps.end_ms
    from (select distinct gpu_uuid, hour_ms from readings) as hours
    inner join gpus using (gpu_uuid)
    inner join temp.int_train_steps as steps
        on gpus.attempt_key = steps.attempt_key and hours.hour_ms = steps.end_ms // one_hour_ms() * one_hour_ms()
    anti join seen
        on gpus.attempt_key = seen.attempt_key and steps.step = seen.step and gpus.gpu_uuid = seen.gpu_uuid
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
