-- Roofline of the scope's runs: FLOP/s and bytes of memory per second that a GPU achieved, both over all allocated time, against
-- the peaks of its model. FLOPs are the model's, without recomputed activations; bytes are the share of time in which memory
-- transferred, of its peak, at most what was moved.
-- grain: run_key
-- evaluated: first
-- access: team
-- flops_per_gpu_s, peak_flops_per_s: in the type of the run's MFU; null: MFU is not known but by the job's own word
-- bytes_per_gpu_s, peak_bytes_per_s: null: DRAM active is not measured, or a GPU has no published peak
-- intensity_flops_per_byte: achieved FLOPs over bytes; ridge_flops_per_byte: that of the peaks: below it memory is the limit
-- roof_flops_per_s: the most at that intensity; roof_ratio: flops_per_gpu_s / roof_flops_per_s
with steps as (
    select attempts.run_key, sum((scope_end(steps.end_ms) - scope_start(steps.start_ms)) * attempts.gpus) as step_ms
    from intermediate.int_train_steps as steps
    inner join intermediate.int_attempts as attempts using (attempt_key)
    where in_window(steps.start_ms, steps.end_ms) and of_teams(attempts.team) and in_run(attempts.run_key)
    group by attempts.run_key
),

held as (
    select run_key, sum(gpu_ms) as held_ms from marts.run_categories group by run_key
),

achieved as (
    select
        models.run_key,
        case when speeds.mfu_method != 'reported MFU' then speeds.model_flops_per_s / peers.gpus end as step_flops_per_gpu_s,
        step_flops_per_gpu_s * steps.step_ms / held.held_ms as flops_per_gpu_s,
        step_flops_per_gpu_s / nullif(speeds.mfu_ratio, 0) as peak_flops_per_s,
        bounds.dram_active_ratio * models.memory_bytes_per_s as bytes_per_gpu_s,
        models.memory_bytes_per_s as peak_bytes_per_s
    from marts.run_gpu_models as models
    inner join marts.run_bounds as bounds using (run_key)
    left join marts.run_speed as speeds using (run_key)
    left join marts.run_peers as peers using (run_key)
    left join steps using (run_key)
    left join held using (run_key)
)

select
    * exclude (step_flops_per_gpu_s),
    flops_per_gpu_s / nullif(bytes_per_gpu_s, 0) as intensity_flops_per_byte,
    peak_flops_per_s / peak_bytes_per_s as ridge_flops_per_byte,
    case when intensity_flops_per_byte is not null then least(peak_flops_per_s, intensity_flops_per_byte * peak_bytes_per_s) end
        as roof_flops_per_s,
    flops_per_gpu_s / roof_flops_per_s as roof_ratio
from achieved
