-- Steps during which a GPU of the gang was held back: a slowdown reason (not the power cap alone) in at
-- least half of its samples inside the step.
-- All GPUs that the attempt holds are looked at: in many jobs one rank speaks for all.
-- grain: attempt_key, step, gpu_uuid
with gpus as (
    select attempt_key, gpu_uuid from temp.int_rank_gpus where gpu_uuid is not null
    union
    select attempts.attempt_key, holds.gpu_uuid
    from temp.attempts as attempts
    inner join intermediate.int_holds as holds using (job_run_key)
)

select gpus.attempt_key, steps.step, gpus.gpu_uuid
from intermediate.int_slowed_readings as readings
inner join gpus using (gpu_uuid)
asof join temp.int_train_steps as steps
    on gpus.attempt_key = steps.attempt_key and readings.ts_ms >= steps.start_ms
where readings.ts_ms < steps.end_ms
group by gpus.attempt_key, steps.step, gpus.gpu_uuid
having count_if(readings.is_slowed) > 0 and count_if(readings.is_slowed) >= build_threshold('throttle_sample_share') * count(*)
