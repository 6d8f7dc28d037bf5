-- The first failure that each attempt reported and that no later step of the same source proves to be overcome: a program
-- may handle an error and go on.
-- grain: attempt_key
-- at_ms: when; an error without a time has that of the log's line before it, but not one before the last step
-- materialised: attempts, since only runs with new events change
-- skip_if_empty: temp.attempt_events where event = 'failure'
with failures as (
    select events.attempt_key, events.source, events.kind, events.msg, events.ts, events.end_ms, kinds.position
    from temp.attempt_events as events
    left join reference.failure_kinds as kinds using (kind)
    where events.event = 'failure'
),

last_steps as (
    select attempt_key, source, max(start_ms) as begun_ms
    from temp.attempt_events
    semi join failures using (attempt_key)
    where event = 'step'
    group by attempt_key, source
),

-- a rank that does not know of the failure yet may begin another step within a second
final as (
    select
        failures.*,
        -- what may follow from another failure gives way to one that a program states within a minute of it
        case
            when failures.kind in ('nccl_timeout', 'nccl_error', 'network', 'segfault', 'sigkill', 'runtime_error', 'sigabrt', 'exception')
                then failures.ts + interval 1 minute
            else failures.ts
        end as said_at
    from failures
    left join last_steps using (attempt_key, source)
    where failures.end_ms >= coalesce(last_steps.begun_ms - 1000, failures.end_ms)
)

select
    final.attempt_key,
    -- of one moment the most specific: lines without a time have that of the line before them
    arg_min(final.kind, {ts: said_at, place: coalesce(final.position, 99), kind: final.kind, msg: final.msg}) as kind,
    arg_min(final.msg, {ts: said_at, place: coalesce(final.position, 99), kind: final.kind, msg: final.msg}) as msg,
    greatest(min(final.end_ms), coalesce(max(steps.begun_ms), 0)) as at_ms
from final
left join (select attempt_key, max(begun_ms) as begun_ms from last_steps group by attempt_key) as steps using (attempt_key)
group by final.attempt_key
