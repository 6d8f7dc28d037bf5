-- Attempts that ended badly, with the time of the trouble before their end.
-- grain: attempt_key
-- trouble_from_ms: from when on an error may be the cause: five minutes before the end, or the start of the stall: a
--  watchdog ends a hung attempt many minutes after what hung it
-- trouble_until_ms: an Xid that ends an attempt is logged within a minute of its end
with stalls as (
    select attempt_key, max(start_ms) as start_ms
    from intermediate.int_run_timeline
    where 'fault_stall' in (category, phase)
    group by attempt_key
)

select
    attempts.*,
    least(attempts.end_ms - threshold('failure_reach_ms')::bigint, coalesce(stalls.start_ms, attempts.end_ms))
        as trouble_from_ms,
    attempts.end_ms + threshold('failure_late_ms')::bigint as trouble_until_ms
from intermediate.int_attempts as attempts
left join stalls using (attempt_key)
where attempts.outcome in ('failed', 'limit')
