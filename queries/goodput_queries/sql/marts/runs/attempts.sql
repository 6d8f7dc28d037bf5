-- Attempts of runs: each start of the gang's processes, its outcome and its retained steps.
-- grain: attempt_key
-- access: team
-- end_at: null while it runs
-- outcome: ok, failed, limit, unknown, running
-- has_events: the job sent events
-- cores_per_gpu: CPU cores that the scheduler gave it; not judged, since what a job needs differs
-- lost_steps: rolled back; null: the next attempt began at a step that was not reached before, so that none shows it
-- cause: failure reason, where evidence shows one; marts.attempt_causes has further ones
-- cause_class: hardware, node, network, host memory, storage, numerics, user code, scheduler, unknown
-- cause_fix: recommended action, where one is known
with steps as (
    select
        attempt_key,
        count(*) as steps,
        min(step) as first_step,
        max(step) as last_step,
        count(*) filter (where fate = 'kept') as kept_steps,
        count(*) filter (where fate = 'lost') as lost_steps,
        median(end_ms - start_ms) / 1000.0 as median_step_s,
        sum(tokens) as tokens
    from intermediate.int_train_steps
    group by attempt_key
)

select
    attempts.run_key,
    attempts.attempt,
    attempts.attempt_key,
    attempts.job_run_key,
    attempts.cluster,
    attempts.job_id,
    attempts.job_name,
    attempts.team,
    attempts.user_name,
    attempts.state,
    attempts.outcome,
    from_ms(attempts.eligible_ms) as eligible_at,
    from_ms(attempts.start_ms) as start_at,
    from_ms(attempts.end_ms) as end_at,
    attempts.gpus,
    nullif(job_runs.cpus, 0) / nullif(job_runs.gpus, 0) as cores_per_gpu,
    coalesce(steps.steps, 0) as steps,
    steps.first_step,
    steps.last_step,
    coalesce(steps.kept_steps, 0) as kept_steps,
    case when skipped.attempt_key is null or steps.lost_steps > 0 then coalesce(steps.lost_steps, 0) end as lost_steps,
    steps.median_step_s,
    steps.tokens,
    attempts.has_events,
    causes.cause,
    causes.class as cause_class,
    causes.confidence as cause_confidence,
    causes.evidence as cause_evidence,
    causes.fix as cause_fix
from intermediate.int_attempts as attempts
left join steps using (attempt_key)
left join intermediate.int_job_runs as job_runs using (job_run_key)
left join intermediate.int_skipped_steps as skipped using (attempt_key)
left join intermediate.int_attempt_causes as causes using (attempt_key)
where
    in_window(attempts.start_ms, attempts.end_ms)
    and in_cluster(attempts.cluster)
    and of_teams(attempts.team)
    and in_team(attempts.team)
    and in_user(attempts.user_name)
    and in_run(attempts.run_key)
