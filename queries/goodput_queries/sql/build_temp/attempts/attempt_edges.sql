-- The moments that divide an attempt: start-up ends with the first step (less what that step took longer
-- than its followers), work ends with the last completed step.
-- grain: attempt_key
-- skip_if_empty: temp.int_attempts
-- first_step_ms: null: the attempt reported no step
-- steps_from_ms: first_step_ms plus the first step's excess over the median of the next ten
-- work_end_ms: end of the gang's last completed step, or without steps the job's own end
-- startup_end_ms: without steps: job.start, else the end of the last init phase
-- teardown_until_ms: end of what counts as teardown after the last step; beyond it is a fault stall
-- is_without_progress: ended badly and retained no step, as far as its trainer says
with first_steps as (
    select
        attempt_key,
        min(start_ms) as first_step_ms,
        max(end_ms) as last_step_end_ms,
        arg_min(end_ms - start_ms, start_ms, cast(threshold('first_step_window') as bigint) + 1) as first_lengths_ms,
        max(median_step_ms) as median_step_ms,
        count_if(fate = 'kept') as kept_steps,
        count_if(fate in ('at_risk', 'durability_unknown')) as unsettled_steps,
        count(*) as steps
    from temp.int_train_steps
    group by attempt_key
),

said as (
    select
        attempt_key,
        max(end_ms) filter (where event = 'job.start') as job_start_ms,
        max(end_ms) filter (where event = 'job.end') as job_end_ms,
        -- the controller of a job that shows no progress says how it ended, not what it did
        bool_or(source not in ('kubernetes', 'kubernetes-api') or event = 'metric') as is_of_trainer
    from temp.attempt_events
    group by attempt_key
),

inits as (
    select attempt_key, max(end_ms) as init_end_ms
    from temp.declared_phases
    where phase = 'init'
    group by attempt_key
)

select
    attempts.attempt_key,
    first_steps.first_step_ms,
    first_steps.first_step_ms
        + cast(
            floor(least(
                greatest(
                    0,
                    coalesce(
                        first_steps.first_lengths_ms[1]
                        - list_aggregate(first_steps.first_lengths_ms[2:], 'median'),
                        0
                    )
                ),
                first_steps.first_lengths_ms[1]
            )) as bigint
        ) as steps_from_ms,
    case
        when first_steps.steps > 0 then first_steps.last_step_end_ms
        else said.job_end_ms
    end as work_end_ms,
    case when first_steps.steps is null then coalesce(said.job_start_ms, inits.init_end_ms) end as startup_end_ms,
    case
        when attempts.outcome = 'ok' then forever_ms()
        when attempts.is_stalled then 0
        when attempts.outcome = 'limit'
            then first_steps.last_step_end_ms
                + cast(floor(threshold('teardown_max_steps') * first_steps.median_step_ms) as bigint)
        else 0
    end as teardown_until_ms,
    first_steps.median_step_ms,
    coalesce(first_steps.steps, 0) as steps,
    coalesce(first_steps.kept_steps, 0) as kept_steps,
    case
        when first_steps.steps > 0
            then attempts.outcome in ('failed', 'limit')
                and first_steps.kept_steps = 0
                and first_steps.unsettled_steps = 0
        -- a job that never reports steps and is cancelled or times out may have done useful work
        else attempts.outcome = 'failed' and coalesce(said.is_of_trainer, true)
    end as is_without_progress
from temp.int_attempts as attempts
left join first_steps using (attempt_key)
left join said using (attempt_key)
left join inits using (attempt_key)
