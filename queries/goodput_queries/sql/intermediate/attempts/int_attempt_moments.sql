-- The moments of an attempt that goodput by wall clock is made of (marts.run_wall_clock), as its events report them.
-- grain: attempt_key
-- begin_ms, last_ms: its first and last event
-- stepped_ms: end of its first step; null: it completed none
-- saved_ms: end of the blocking part of its last save, or without such a part when the last save became durable; null: none did
-- saving_ms: sum of the blocking parts of its saves
-- materialised: attempts, since only runs with new events change
-- skip_if_empty: temp.attempt_events
with spans as (
    select
        attempt_key,
        min(start_ms) as begin_ms,
        max(end_ms) as last_ms,
        max(end_ms) filter (where event = 'ckpt.durable') as durable_ms
    from temp.attempt_events
    group by attempt_key
),

saves as (
    select attempt_key, max(end_ms) as saved_ms, sum(end_ms - start_ms)::bigint as saving_ms
    from temp.declared_phases
    where phase = 'ckpt_save' and not is_open
    group by attempt_key
),

first_steps as (
    select attempt_key, min(end_ms) as stepped_ms
    from temp.int_train_steps
    group by attempt_key
)

select
    spans.attempt_key,
    spans.begin_ms,
    spans.last_ms,
    first_steps.stepped_ms,
    coalesce(saves.saved_ms, spans.durable_ms) as saved_ms,
    coalesce(saves.saving_ms, 0) as saving_ms
from spans
left join saves using (attempt_key)
left join first_steps using (attempt_key)
