-- The events of this build with the attempt they belong to; events of unmatched lives are left out.
-- grain: none (an event as it was written)
select
    attempts.attempt_key,
    attempts.run_key,
    attempts.job_run_key,
    attempts.start_ms as attempt_start_ms,
    attempts.end_ms as attempt_end_ms,
    events.* exclude (cluster, run_id, attempt)
from temp.job_events as events
inner join temp.attempts as attempts
    on events.cluster = attempts.cluster
    and events.run_id = attempts.said_run_id
    and events.attempt = attempts.said_attempt
