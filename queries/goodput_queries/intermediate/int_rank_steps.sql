-- Steps as single ranks tell them, with their attempt.
-- grain: attempt_key, rank, step
-- start_ms: end less the told duration; without one, the end of the rank's step before
-- wait_data_s, comm_s, straggler_s, throttle_s: what the rank measured inside the step
-- materialised: attempts, since gang steps, splits and stragglers all read it
with events as (
    select * from temp.attempt_events where event in ('step', 'step.start') and step is not null
),

bounded as (
    select
        events.attempt_key,
        events.rank,
        events.host,
        events.event,
        events.step,
        case
            when events.dur_s is not null then events.start_ms
            else coalesce(
                lag(events.end_ms) over (
                    partition by events.attempt_key, events.rank, events.host order by events.ts
                ),
                events.end_ms
            )
        end as start_ms,
        events.end_ms,
        events.data_s,
        events.comm_s,
        events.straggler_s,
        events.throttle_s,
        events.tokens,
        events.flops
    from events
)

select
    attempt_key,
    rank,
    step,
    min(start_ms) as start_ms,
    max(end_ms) as end_ms,
    sum(data_s) as wait_data_s,
    sum(comm_s) as comm_s,
    sum(straggler_s) as straggler_s,
    sum(throttle_s) as throttle_s,
    sum(tokens) as tokens,
    sum(flops) as flops
from bounded
where event = 'step'
group by attempt_key, rank, step
