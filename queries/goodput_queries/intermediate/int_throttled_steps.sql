-- Steps during which a GPU of the gang was held back: a slowdown reason (not the power cap alone) in at
-- least half of its samples inside the step.
-- grain: attempt_key, step, gpu_uuid
with reasons as (
    select bit_or(bit_value::bigint) as mask
    from reference.clocks_event_reasons
    where reason in ('hw_slowdown', 'sw_thermal', 'hw_thermal', 'hw_power_brake')
),

slowed as (
    -- readings with the bit are rare: find them first, then the steps around them
    select gpu_uuid, ts_ms
    from staging.stg_gpu_samples, reasons
    where clocks_event_reasons & reasons.mask <> 0
),

gpus as (select attempt_key, gpu_uuid from intermediate.int_rank_gpus where gpu_uuid is not null),

touched as (
    select gpus.attempt_key, steps.step, gpus.gpu_uuid, steps.start_ms, steps.end_ms, count(*) as slowed_samples
    from slowed
    inner join gpus using (gpu_uuid)
    asof join intermediate.int_train_steps as steps
        on gpus.attempt_key = steps.attempt_key and slowed.ts_ms >= steps.start_ms
    where slowed.ts_ms < steps.end_ms
    group by all
),

sampled as (
    select touched.attempt_key, touched.step, touched.gpu_uuid, count(*) as samples
    from touched
    inner join staging.stg_gpu_samples as samples
        on touched.gpu_uuid = samples.gpu_uuid
        and samples.ts_ms >= touched.start_ms
        and samples.ts_ms < touched.end_ms
    where samples.clocks_event_reasons is not null
    group by all
)

select touched.attempt_key, touched.step, touched.gpu_uuid
from touched
inner join sampled using (attempt_key, step, gpu_uuid)
where touched.slowed_samples >= threshold('throttle_sample_share') * sampled.samples
