-- A life of a gang as its events tell it: one row a run and attempt.
-- grain: cluster, run_id, attempt
-- materialised: run_ids, since only runs with new events change
select
    cluster,
    run_id,
    attempt,
    min(start_ms) as first_ms,
    max(end_ms) as last_ms,
    list(distinct host order by host) filter (where host is not null) as hosts,
    list(distinct gpu_uuid order by gpu_uuid) filter (where gpu_uuid is not null) as gpu_uuids,
    count(*) as events
from temp.job_events
group by cluster, run_id, attempt
