-- The first failure that each attempt reported.
-- grain: attempt_key
-- materialised: attempts, since only runs with new events change
-- skip_if_empty: temp.attempt_events
select attempt_key, arg_min(kind, (ts, kind, msg)) as kind, arg_min(msg, (ts, kind, msg)) as msg
from temp.attempt_events
where event = 'failure'
group by attempt_key
