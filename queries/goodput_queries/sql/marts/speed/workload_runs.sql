-- Runs of the scope with steps to compare in its window, each with its workload: what is the same work on the same GPUs.
-- grain: run_key
-- evaluated: first
-- access: team
-- workload: name of the job, else of the run (marts.run_workloads); params: of the model, as the job declares it; null: not declared
-- gpu_models: in order; gpus: of its largest attempt
-- steps: after the warm-up (marts.judged_steps); step_s: their mean
-- step_variation_ratio: standard deviation / mean of step times
-- speed_unit: tokens, else samples, else steps: what its speed is in; speed: per second of step time
-- batch: mean tokens or samples of a step; null: not reported
-- comm_ratio: exposed communication of the retained steps that measure it; null: none does
-- disturbed_ratio: share of allocated time of steps slowed by throttling, waits for stragglers or stalls after faults
-- not_comparable: why its speed is not compared: what disturbed it, or too few steps; null: nothing is known against it
with steps as (
    select
        run_key,
        max(gpus) as gpus,
        count(*) as steps,
        min(start_ms) as start_ms,
        max(end_ms) as end_ms,
        sum(step_ms) / 1000.0 as all_s,
        coalesce(stddev_samp(step_ms), 0) / avg(step_ms) as step_variation_ratio,
        case
            when count(tokens) = count(*) then 'tokens'
            when count(samples) = count(*) then 'samples'
            else 'steps'
        end as speed_unit,
        case speed_unit when 'tokens' then sum(tokens) when 'samples' then sum(samples) else count(*) end as work
    from marts.judged_steps
    group by run_key
),

owners as (
    select
        run_key,
        any_value(columns(['run_id', 'cluster', 'team', 'user_name']))
    from intermediate.int_job_run_owners
    where of_teams(team)
    group by run_key
),

declared as (
    select owners.run_key, arg_max(models.params, models.at_ms) as params
    from staging.stg_job_models as models
    inner join intermediate.int_report_lives as lives
        on models.cluster = lives.cluster and models.run_id = lives.run_id
        and models.attempt is not distinct from lives.attempt
        and models.at_ms >= lives.from_ms and models.at_ms < lives.until_ms
    inner join intermediate.int_job_run_owners as owners using (job_run_key)
    where models.params > 0 and of_teams(owners.team)
    group by owners.run_key
),

communication as (
    select attempts.run_key, sum(losses.comm_ms) / sum(losses.end_ms - losses.start_ms) as comm_ratio
    from intermediate.int_rank_step_losses as losses
    inner join intermediate.int_attempts as attempts using (attempt_key)
    where losses.fate = 'kept' and losses.comm_ms is not null and in_window(losses.start_ms, losses.end_ms) and of_teams(attempts.team)
    group by attempts.run_key
),

slowed as (
    select
        categories.run_key,
        sum(categories.gpu_ms) as gpu_ms,
        coalesce(sum(categories.gpu_ms) filter (where reasons.category is not null), 0) as slowed_ms,
        arg_max(reasons.label, categories.gpu_ms) filter (where reasons.category is not null) as label
    from marts.run_categories as categories
    left join (
        values
            ('throttled', 'throttling'), ('straggler_wait', 'waits for stragglers'), ('fault_stall', 'stalls after faults')
    ) as reasons (category, label) using (category)
    group by categories.run_key
)

select
    owners.* exclude (run_key),
    steps.* exclude (start_ms, end_ms, all_s, work),
    names.workload,
    declared.params,
    models.gpu_models,
    from_ms(steps.start_ms) as start_at,
    from_ms(steps.end_ms) as end_at,
    steps.all_s / steps.steps as step_s,
    steps.work / steps.all_s as speed,
    case when steps.speed_unit <> 'steps' then steps.work / steps.steps end as batch,
    communication.comm_ratio,
    slowed.slowed_ms / slowed.gpu_ms as disturbed_ratio,
    case
        when steps.steps < threshold('compare_min_steps')
            then 'only ' || counted(steps.steps, 'step') || ' after the warm-up'
        when slowed.slowed_ms > threshold('disturbed_share') * slowed.gpu_ms
            then slowed.label || ', ' || round(100 * slowed.slowed_ms / slowed.gpu_ms, 1) || ' % of its allocated time'
    end as not_comparable
from steps
inner join owners using (run_key)
inner join marts.run_workloads as names using (run_key)
left join declared using (run_key)
left join marts.run_gpu_models as models using (run_key)
left join communication using (run_key)
left join slowed using (run_key)
