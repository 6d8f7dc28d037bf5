-- Failures of attempts by how long they had run, in the scope's window: start-up and rare code paths fail at other times
-- than hardware. A time limit, a cancellation, a preemption or a requeue is no failure.
-- grain: cluster, age_from_s
-- evaluated: first
-- age, age_from_s, age_to_s: time since the attempt began; age_to_s: null in the last row
-- attempts: that ran at this age in the window; run_ms: time that they ran so; gpu_ms: run_ms x GPUs
-- failures: attempts that ended at this age in the window with an infrastructure cause
-- other_failures: with any other cause that is no decision of the scheduler
-- mtbf_s: run time / failures; mtbf_low_s, mtbf_high_s: its exact 95 % Poisson interval; null: no failure, or the
--  interval is open
with attempts as (
    select
        inside.cluster,
        inside.gpus,
        inside.start_ms - attempts.start_ms as from_ms,
        inside.end_ms - attempts.start_ms as to_ms,
        causes.class <> 'scheduler' and inside.last_ms < scope_to_ms() as has_failed,
        causes.is_platform
    from intermediate.int_attempts_in_scope as inside
    inner join intermediate.int_attempts as attempts using (attempt_key)
    left join intermediate.int_attempt_causes as causes using (attempt_key)
    where inside.end_ms > inside.start_ms
),

ages(age, age_from_s, age_to_s) as (
    values
    ('under 10 min', 0, 600),
    ('10 min to 1 h', 600, 3600),
    ('1 to 6 h', 3600, 21600),
    ('6 to 24 h', 21600, 86400),
    ('over a day', 86400, null)
),

at_ages as (
    select
        *,
        least(to_ms, coalesce(1000 * age_to_s, to_ms)) - greatest(from_ms, 1000 * age_from_s) as age_ms,
        has_failed and to_ms <= coalesce(1000 * age_to_s, to_ms) as has_failed_then
    from attempts
    inner join ages on to_ms > 1000 * age_from_s and from_ms < coalesce(1000 * age_to_s, to_ms)
),

counted as (
    select
        cluster,
        age,
        age_from_s,
        age_to_s,
        count(*) as attempts,
        sum(age_ms)::bigint as run_ms,
        sum(gpus * age_ms)::bigint as gpu_ms,
        count(*) filter (where has_failed_then and is_platform) as failures,
        count(*) filter (where has_failed_then and not is_platform) as other_failures
    from at_ages
    group by all
)

select
    *,
    run_ms / 1000.0 / nullif(failures, 0) as mtbf_s,
    run_ms / 1000.0 / poisson_high(failures) as mtbf_low_s,
    run_ms / 1000.0 / nullif(poisson_low(failures), 0) as mtbf_high_s
from counted
