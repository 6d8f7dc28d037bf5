-- A life of a gang as its events tell it: one row a run and attempt.
-- grain: cluster, run_id, attempt
-- has_failed: the job reports a failure that is no preemption
-- materialised: run_ids, since only runs with new events change
select
    cluster,
    run_id,
    attempt,
    min(start_ms) as first_ms,
    max(end_ms) as last_ms,
    list(distinct host order by host) filter (where host is not null) as hosts,
    list(distinct gpu_uuid order by gpu_uuid) filter (where gpu_uuid is not null) as gpu_uuids,
    count(*) as events,
    bool_or(event = 'failure' and kind is distinct from 'preempted') as has_failed
from temp.job_events
group by cluster, run_id, attempt
