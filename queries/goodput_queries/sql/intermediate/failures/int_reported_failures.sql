-- The first failure that each attempt reported and that no later step proves to be overcome: a program may handle an
-- error and go on.
-- grain: attempt_key
-- at_ms: when; an error without a time has that of the log's line before it
-- materialised: attempts, since only runs with new events change
-- skip_if_empty: temp.attempt_events
with failures as (
    select events.attempt_key, events.kind, events.msg, events.ts, events.end_ms, kinds.position
    from temp.attempt_events as events
    left join reference.failure_kinds as kinds using (kind)
    where events.event = 'failure'
),

-- a rank that does not know of the failure yet may begin another step within a second
last_steps as (
    select attempt_key, max(start_ms) - 1000 as begun_ms
    from temp.attempt_events
    semi join failures using (attempt_key)
    where event = 'step'
    group by attempt_key
)

select
    failures.attempt_key,
    -- of one moment the most specific: lines without a time have that of the line before them
    arg_min(failures.kind, {ts: failures.ts, place: coalesce(failures.position, 99), kind: failures.kind, msg: failures.msg})
        as kind,
    arg_min(failures.msg, {ts: failures.ts, place: coalesce(failures.position, 99), kind: failures.kind, msg: failures.msg})
        as msg,
    min(failures.end_ms) as at_ms
from failures
left join last_steps using (attempt_key)
where failures.end_ms >= coalesce(last_steps.begun_ms, failures.end_ms)
group by failures.attempt_key
