-- Communication inside the retained steps of runs: what is measured, and where only the NCCL profiler's durations are
-- known, how much it can be at most (they say nothing of compute that ran meanwhile).
-- grain: run_key
-- access: team
-- unsplit_ms: training steps of which communication is not measured
-- comm_at_most_ms: time of ranks in NCCL operations, waiting for late ranks included: the upper bound, in steps with
--  durations of the NCCL profiler and no exposed time
-- comm_at_most_ratio: of the time of ranks in these steps
with ledger as (
    select
        run_key,
        coalesce(sum(gpu_ms) filter (where category = 'step_unsplit'), 0)::bigint as unsplit_ms
    from marts.run_categories
    group by run_key
),

timed as (
    select
        attempts.run_key,
        sum(losses.end_ms - losses.start_ms)::bigint as timed_step_ms,
        round(sum(losses.comm_at_most_ms))::bigint as comm_at_most_ms
    from intermediate.int_rank_step_losses as losses
    inner join intermediate.int_attempts as attempts using (attempt_key)
    where
        losses.fate = 'kept'
        and losses.comm_at_most_ms is not null
        and coalesce(losses.measured_by, 'NCCL profiler') = 'NCCL profiler'
        and in_window(losses.start_ms, losses.end_ms)
        and of_teams(attempts.team)
        and in_cluster(attempts.cluster)
        and in_run(attempts.run_key)
    group by attempts.run_key
)

select
    ledger.*,
    timed.comm_at_most_ms,
    timed.comm_at_most_ms / nullif(timed.timed_step_ms, 0) as comm_at_most_ratio
from ledger
left join timed using (run_key)
