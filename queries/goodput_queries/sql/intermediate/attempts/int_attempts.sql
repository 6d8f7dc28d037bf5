-- Attempts: the lives of the gang's processes inside each job run, end to end; a job run without events has one
-- attempt. An attempt starts at its first event, the first attempt with the hold.
-- grain: attempt_key
-- run_key: the training task across attempts and job runs
-- end_ms: null: still running
-- life: its number in the job run, from 1; its events are found by it (intermediate.int_attempt_lives)
-- outcome: ok, failed, limit, unknown, running; an attempt followed by another in its job run failed, and so did one that
--  reports a failure before its job is requeued
-- has_events: the job sent events of this attempt
-- is_stalled: it lived for 15 minutes and more after its last event, which was no end
-- materialised: runs, since of other runs nothing changed
-- skip_if_empty: temp.dirty_job_runs
with job_runs as (
    select *
    from intermediate.int_job_runs
    semi join temp.dirty_job_runs using (job_run_key)
    where start_ms is not null and (end_ms is null or end_ms > start_ms)
),

lives as (
    select job_run_key, life, any_value(begin_ms) as first_ms, bool_or(has_failed) as has_failed
    from intermediate.int_attempt_lives
    semi join temp.dirty_job_runs using (job_run_key)
    group by job_run_key, life
),

run_of_job_run as (
    select job_run_key, run_of_lives(run_id, place, first_ms) as run_id
    from intermediate.int_event_lives
    semi join temp.dirty_job_runs using (job_run_key)
    group by job_run_key
),

joined as (
    select
        job_runs.*,
        coalesce(run_of_job_run.run_id, job_runs.job_id) as run_id,
        lives.life is not null as has_events,
        coalesce(lives.life, 1) as life,
        lives.has_failed,
        lives.first_ms,
        next_lives.first_ms as next_first_ms
    from job_runs
    left join run_of_job_run using (job_run_key)
    left join lives using (job_run_key)
    left join lives as next_lives
        on lives.job_run_key = next_lives.job_run_key
        and lives.life + 1 = next_lives.life
),

ordered as (
    select *, row_number() over (order by cluster, run_id, start_ms, submit_ms, job_run_key, life) as place
    from joined
),

firsts as (
    select cluster, run_id, min(place) as first_place from ordered group by cluster, run_id
),

numbered as (
    select ordered.*, place - first_place as ordinal
    from ordered
    inner join firsts using (cluster, run_id)
)

select
    cluster || '/' || run_id || '#' || ordinal as attempt_key,
    cluster || '/' || run_id as run_key,
    cluster,
    run_id,
    ordinal as attempt,
    job_run_key,
    life,
    job_id,
    job_name,
    team,
    user_name,
    partition,
    qos,
    state,
    has_events,
    is_infrastructure and next_first_ms is null as is_infrastructure,
    case
        when next_first_ms is not null or (state = 'REQUEUED' and has_failed) then 'failed'
        else outcome
    end as outcome,
    next_first_ms is null as is_last_of_job_run,
    next_first_ms is null and is_stalled as is_stalled,
    submit_ms,
    eligible_ms,
    case when life = 1 then start_ms else greatest(first_ms, start_ms) end as start_ms,
    case
        when next_first_ms is not null
            then greatest(least(next_first_ms, coalesce(end_ms, next_first_ms)), start_ms)
        else end_ms
    end as end_ms,
    gpus,
    suspended_s
from numbered
