-- Steps by which runs are compared: those of marts.timed_steps after the warm-up of their attempt that ended in the
-- scope's window.
-- grain: attempt_key, step
-- access: team
-- step_ms: duration in the gang
-- tokens, samples: of the gang; null: not reported
select run_key, attempt_key, step, start_ms, end_ms, gpus, step_ms, tokens, samples
from marts.timed_steps
where
    step_of_attempt >= threshold('step_warm_up')
    and step_ms > 0
    and in_window(end_ms - 1, end_ms)
