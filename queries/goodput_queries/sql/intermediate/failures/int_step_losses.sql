-- Training loss of steps, as the lowest rank that reports it gives it.
-- grain: attempt_key, step
-- loss: NaN or infinite where the job reports it so
-- at_ms: end of the step
-- materialised: attempts, since only runs with new events change
-- skip_if_empty: temp.attempt_events where loss is not null
select
    attempt_key,
    step,
    arg_min(loss, {place: event_source_place(source), rank: rank, end_ms: end_ms}) as loss,
    arg_min(end_ms, {place: event_source_place(source), rank: rank, end_ms: end_ms}) as at_ms
from temp.attempt_events
-- a log may print it on a line of its own
where event in ('step', 'metric') and loss is not null and step is not null
group by attempt_key, step
