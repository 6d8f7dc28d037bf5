-- Time between failures of attempts by their reason, and the time until the run went on, in the scope's window. A time limit, a
-- cancellation, a preemption or a requeue is a decision and no failure.
-- grain: cluster, cause
-- evaluated: first
-- access: team
-- class, blame: of the cause
-- failures: attempts that ended in the window with this failure reason
-- run_ms, gpu_ms: time that all attempts of the cluster ran in the window, whatever ended them; gpu_ms: times their GPUs
-- mtbf_s: run time of all attempts / failures; mtbf_low_s, mtbf_high_s: its exact 95 % Poisson interval; null: the
--  interval is open
-- restarts: failures after which the run began another attempt
-- mttr_s: mean time in which the run did not train: from the last completed step of the
--  attempt to the begin of the first one of the next, without steps from its end and to the start; null: no restart
-- lost_gpu_ms, lost_cost: lost work, fault stall and time without progress of these attempts, in the window
with attempts as (select * from intermediate.int_attempts_in_scope),

exposed as (
    select cluster, sum(end_ms - start_ms)::bigint as run_ms, sum(gpus * (end_ms - start_ms))::bigint as gpu_ms
    from attempts
    where end_ms > start_ms
    group by cluster
),

steps as (
    select attempt_key, min(start_ms) as start_ms, max(end_ms) as end_ms
    from intermediate.int_train_steps
    where attempt_key in (select attempt_key from attempts)
    group by attempt_key
),

ended as (
    select
        failed.cluster,
        failed.lost_gpu_ms,
        failed.lost_cost,
        causes.cause,
        causes.class,
        causes.blame,
        (coalesce(first_steps.start_ms, later.start_ms) - coalesce(last_steps.end_ms, failed.end_ms)) / 1000.0 as repair_s
    from intermediate.int_failed_attempts_in_scope as failed
    inner join intermediate.int_attempt_causes as causes using (attempt_key)
    left join intermediate.int_attempts as later
        on failed.run_key = later.run_key and failed.attempt + 1 = later.attempt and of_teams(later.team)
    left join steps as last_steps on failed.attempt_key = last_steps.attempt_key
    left join steps as first_steps on later.attempt_key = first_steps.attempt_key
    where failed.gpus > 0 and causes.class <> 'scheduler'
),

by_cause as (
    select
        cluster,
        cause,
        any_value(class) as class,
        any_value(blame) as blame,
        count(*) as failures,
        count(repair_s) as restarts,
        avg(repair_s) as mttr_s,
        sum(lost_gpu_ms)::bigint as lost_gpu_ms,
        sum(lost_cost) as lost_cost
    from ended
    group by cluster, cause
)

select
    by_cause.*,
    exposed.run_ms,
    exposed.gpu_ms,
    exposed.run_ms / 1000.0 / by_cause.failures as mtbf_s,
    exposed.run_ms / 1000.0 / poisson_high(by_cause.failures) as mtbf_low_s,
    exposed.run_ms / 1000.0 / nullif(poisson_low(by_cause.failures), 0) as mtbf_high_s
from by_cause
inner join exposed using (cluster)
