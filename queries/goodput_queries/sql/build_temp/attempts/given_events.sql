-- The events of jobs that number their attempts, of the runs in this build, with their attempt as given; of one that only
-- occurs after its hold, as temp.event_numbers has it.
-- grain: event_id
-- job_run_start_ms: of the job run of its name that is nearest to it
-- materialised: inline, since it is as wide as the events, and who asks again asks little
select events.* replace (coalesce(numbers.number, events.attempt) as attempt), numbers.job_run_start_ms
from staging.stg_job_events as events
semi join temp.dirty_run_ids using (cluster, run_id)
left join temp.event_numbers as numbers using (cluster, run_id, attempt)
-- zones are known for it: what came before is not read
where events.attempt is not null and events.ts >= from_ms(build_events_from_ms())
