-- Speed of the scope's runs inside their steps, in the scope's window: two runs of equal goodput can differ by three in
-- it. First steps of attempts are left out (marts.timed_steps). Unknown is null, with the reason in its column `_reason`.
-- grain: run_key
-- evaluated: first
-- access: team
-- steps: number of timed steps
-- median_step_s, p5_step_s, p95_step_s: steps that a log printed together have one mean duration
-- tokens_per_s, samples_per_s: of the gang; work_reason: why neither is known
-- tokens_per_gpu_s: tokens of a second of one GPU
-- model_flops_per_s: of the gang; mfu_method: reported FLOPs; 6 x parameters x tokens; reported MFU
-- mfu_ratio: of step time and the peak of mfu_dtype: dense, unless the job declares sparsity (is_sparse); above 1 where
--  what the job declares is wrong, as mfu_reason then says
-- mfu_reason: why it is not known, or above 1
-- is_dtype_assumed: the job does not declare it: bf16, or fp16 where the GPU has no bf16
-- best_ratio: median speed / best, the best decile of windows of at least ten steps; speed is speed_unit per second
-- best_step_s: the median step at that speed; best_reason: why it is not known
with steps as (
    select * from marts.timed_steps where in_window(start_ms, end_ms) and end_ms > start_ms
),

totals as (
    select
        run_key,
        max(gpus) as gpus,
        count(*) as steps,
        quantile_cont(step_ms / 1000.0, [0.05, 0.5, 0.95]) as step_s,
        sum(tokens) / (sum(step_ms) filter (where tokens is not null) / 1000.0) as tokens_per_s,
        sum(tokens) / (sum(step_ms * gpus) filter (where tokens is not null) / 1000.0) as tokens_per_gpu_s,
        sum(samples) / (sum(step_ms) filter (where samples is not null) / 1000.0) as samples_per_s,
        sum(flops) / (sum(step_ms) filter (where flops is not null) / 1000.0) as flops_per_s,
        sum(flops) / (sum(step_ms * gpus) filter (where flops is not null) / 1000.0) as flops_per_gpu_s,
        sum(mfu_ratio * step_ms) / sum(step_ms) filter (where mfu_ratio is not null) as mfu_ratio,
        case
            when count(tokens) = count(*) then 'tokens'
            when count(samples) = count(*) then 'samples'
            else 'steps'
        end as speed_unit
    from steps
    group by run_key
),

attempts as (
    select attempt_key, greatest(10, ceil(count(*) / 100))::bigint as window_steps from steps group by attempt_key
),

windows as (
    select
        any_value(steps.run_key) as run_key,
        count(*) as steps,
        case any_value(totals.speed_unit)
            when 'tokens' then sum(steps.tokens) when 'samples' then sum(steps.samples) else count(*)
        end / sum(steps.step_ms) as speed
    from steps
    inner join attempts using (attempt_key)
    inner join totals using (run_key)
    group by steps.attempt_key, steps.step_of_attempt // attempts.window_steps
    having count(*) >= 10
),

speeds as (
    select
        run_key,
        count(*) as windows,
        median(speed) as speed,
        quantile_cont(speed, 0.9) as best_speed
    from windows
    group by run_key
),

declared as (
    select
        owners.run_key,
        arg_max(models.params, models.at_ms) filter (where models.params > 0) as params,
        arg_max(models.dtype, models.at_ms) filter (where models.dtype is not null) as dtype,
        arg_max(models.is_sparse, models.at_ms) filter (where models.is_sparse is not null) as is_sparse
    from staging.stg_job_models as models
    inner join intermediate.int_report_lives as lives
        on models.cluster = lives.cluster and models.run_id = lives.run_id
        and models.attempt is not distinct from lives.attempt
        and models.at_ms >= lives.from_ms and models.at_ms < lives.until_ms
    inner join intermediate.int_job_run_owners as owners using (job_run_key)
    where of_teams(owners.team)
    group by owners.run_key
),

flops as (
    select
        totals.run_key,
        case
            when totals.flops_per_gpu_s is not null then 'reported FLOPs'
            when declared.params * totals.tokens_per_gpu_s is not null then '6 x parameters x tokens'
            when totals.mfu_ratio is not null then 'reported MFU'
        end as mfu_method,
        coalesce(totals.flops_per_s, 6 * declared.params * totals.tokens_per_s) as flops_per_s,
        coalesce(totals.flops_per_gpu_s, 6 * declared.params * totals.tokens_per_gpu_s) as flops_per_gpu_s,
        totals.mfu_ratio as reported_mfu_ratio,
        declared.dtype is null as is_dtype_assumed,
        coalesce(declared.dtype, case when gpus.bf16_flops_per_s is null then 'fp16' else 'bf16' end) as mfu_dtype,
        coalesce(declared.is_sparse, false) as is_sparse,
        gpus.gpu_models,
        gpus.gpu_instances,
        case mfu_dtype
            when 'bf16' then gpus.bf16_flops_per_s
            when 'bfloat16' then gpus.bf16_flops_per_s
            when 'fp16' then gpus.fp16_flops_per_s
            when 'float16' then gpus.fp16_flops_per_s
            when 'fp8' then gpus.fp8_flops_per_s
            when 'tf32' then gpus.tf32_flops_per_s
            when 'fp32' then gpus.fp32_flops_per_s
            when 'float32' then gpus.fp32_flops_per_s
        end * case when is_sparse then gpus.sparse_factor else 1 end as peak_flops_per_s
    from totals
    left join declared using (run_key)
    left join marts.run_gpu_models as gpus using (run_key)
),

mfu as (
    select
        *,
        case
            when mfu_method = 'reported MFU' then reported_mfu_ratio else flops_per_gpu_s / peak_flops_per_s
        end as mfu_ratio
    from flops
)

select
    totals.* exclude (gpus, step_s, flops_per_s, flops_per_gpu_s, mfu_ratio),
    totals.step_s[2] as median_step_s,
    totals.step_s[1] as p5_step_s,
    totals.step_s[3] as p95_step_s,
    case when totals.speed_unit = 'steps' then 'the job reports neither tokens nor samples of its steps' end as work_reason,
    mfu.flops_per_s as model_flops_per_s,
    mfu.mfu_ratio,
    mfu.mfu_method,
    case when mfu.mfu_method <> 'reported MFU' then mfu.mfu_dtype end as mfu_dtype,
    mfu.is_dtype_assumed and mfu.mfu_method <> 'reported MFU' as is_dtype_assumed,
    mfu.is_sparse,
    mfu.gpu_models,
    case
        when mfu.mfu_ratio > 1 then 'above the peak: what the job declares (FLOPs, parameters, dtype, sparsity) is wrong'
        when mfu.mfu_ratio is not null then null
        when mfu.mfu_method is null and totals.tokens_per_s is not null
            then 'the job reports neither FLOPs nor the number of its parameters'
        when mfu.mfu_method is null then 'the job reports neither FLOPs nor tokens'
        when mfu.gpu_instances > 0 then 'the run is on GPU instances, which have no published peak'
        when mfu.gpu_models is null then 'the GPU model is not known'
        else 'no peak in ' || mfu.mfu_dtype || ' is known of ' || mfu.gpu_models
    end as mfu_reason,
    case when speeds.windows >= 10 then speeds.speed / speeds.best_speed end as best_ratio,
    case when speeds.windows >= 10 then totals.step_s[2] * speeds.speed / speeds.best_speed end as best_step_s,
    case when coalesce(speeds.windows, 0) < 10 then 'fewer than ten windows of ten steps' end as best_reason
from totals
inner join mfu using (run_key)
left join speeds using (run_key)
