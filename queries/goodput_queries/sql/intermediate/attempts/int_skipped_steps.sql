-- Attempts after which their run went on at a step that it had not reached: numbers of steps were counted otherwise then
-- (another batch size), so that they do not show how many steps the run rolled back.
-- grain: attempt_key
-- skip_if_empty: intermediate.int_train_steps
-- resumed_step: the first step of the next attempt; reached_step: the last one of the run before it
with spans as (
    select attempt_key, min(step) as first_step, max(step) as last_step, count(*) as steps
    from intermediate.int_train_steps
    group by attempt_key
),

followed as (
    select
        attempts.run_key,
        attempts.attempt_key,
        spans.steps,
        lead(spans.first_step) over in_order as resumed_step,
        max(spans.last_step) over (in_order rows unbounded preceding) as reached_step
    from spans
    inner join intermediate.int_attempts as attempts using (attempt_key)
    window in_order as (partition by attempts.run_key order by attempts.attempt)
)

select run_key, attempt_key, resumed_step, reached_step
from followed
-- a log that prints every n-th step begins up to n steps late
where resumed_step - reached_step - 1 > least(steps, threshold('skipped_steps_min'))
