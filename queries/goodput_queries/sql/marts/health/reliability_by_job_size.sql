-- Time between failures of attempts by their number of GPUs, in the scope's window. A failure is an attempt that ended
-- in the window with an infrastructure cause: every attempt that a fault of a node ended was interrupted.
-- grain: cluster, gpus_from
-- evaluated: first
-- gpus_from, gpus_to: sizes of the bucket: 1, 2, 3 to 4, 5 to 8 ... up to the powers of two
-- attempts: with time in the window; run_ms: time that they ran in it
-- gpu_ms: milliseconds of a whole GPU: run_ms x GPUs
-- failures: attempts that ended in the window with an infrastructure cause
-- mtbf_s: run time / failures; mtbf_low_s, mtbf_high_s: its exact 95 % Poisson interval; null: no failure, or the
--  interval is open
with attempts as (
    select
        attempts.*,
        case when attempts.gpus > 1 then pow(2, ceil(log2(attempts.gpus)))::bigint else 1 end as gpus_to,
        coalesce(causes.is_platform, false)
        and attempts.last_ms < scope_to_ms() as has_failed
    from intermediate.int_attempts_in_scope as attempts
    left join intermediate.int_attempt_causes as causes using (attempt_key)
),

sizes as (
    select
        cluster,
        gpus_to,
        count(*) as attempts,
        sum(end_ms - start_ms)::bigint as run_ms,
        sum(gpus * (end_ms - start_ms))::bigint as gpu_ms,
        count(*) filter (where has_failed) as failures
    from attempts
    where end_ms > start_ms
    group by cluster, gpus_to
)

select
    cluster,
    case when gpus_to > 2 then gpus_to // 2 + 1 else gpus_to end as gpus_from,
    * exclude (cluster),
    run_ms / 1000.0 / nullif(failures, 0) as mtbf_s,
    run_ms / 1000.0 / poisson_high(failures) as mtbf_low_s,
    run_ms / 1000.0 / nullif(poisson_low(failures), 0) as mtbf_high_s
from sizes
