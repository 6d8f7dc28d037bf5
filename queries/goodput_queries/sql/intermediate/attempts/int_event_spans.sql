-- First and last event of each life of a gang: one row a run and attempt.
-- grain: cluster, run_id, attempt
-- place: rank of its strongest source (event_source_place)
-- has_start: it reports a job.start
-- first_step, last_step: null: it has no step
-- begun_until_ms: its last moment but for what only follows work: saves that became durable, failures, the end of the job
-- failed_ms: the last failure that is no preemption and no end by the scheduler
-- materialised: run_ids, since only runs with new events change
-- skip_if_empty: temp.dirty_run_ids
select
    cluster,
    run_id,
    attempt,
    min(start_ms) as first_ms,
    max(end_ms) as last_ms,
    list(distinct host order by host) filter (where host is not null) as hosts,
    list(distinct gpu_uuid order by gpu_uuid) filter (where gpu_uuid is not null) as gpu_uuids,
    count(*) as events,
    min(event_source_place(source)) as place,
    bool_or(event = 'job.start') as has_start,
    min(step) filter (where event = 'step') as first_step,
    max(step) filter (where event = 'step') as last_step,
    max(case when event = 'step' then end_ms else start_ms end)
        filter (where begins_attempt(event)) as begun_until_ms,
    max(end_ms) filter (where event = 'failure' and coalesce(kind not in ('preempted', 'cancelled', 'time_limit'), true)) as failed_ms
from temp.job_events
group by cluster, run_id, attempt
