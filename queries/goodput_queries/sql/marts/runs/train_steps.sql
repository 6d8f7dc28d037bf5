-- Steps of runs with what slowed them.
-- grain: run_key, attempt, step
-- access: team
-- step_s: duration in the gang, from the earliest start to the latest end over ranks
-- median_step_s: median over the attempt's steps: the baseline
-- data_s: longest data wait of a rank
-- straggler_rank: the rank that the others waited for; null: unknown
-- straggler_wait_s: sum of the others' waits
with losses as (
    select
        attempt_key,
        step,
        max(rank) filter (where is_straggler) as straggler_rank,
        sum(straggler_ms) filter (where not is_straggler) / 1000.0 as straggler_wait_s
    from intermediate.int_rank_step_losses
    group by attempt_key, step
)

select
    attempts.run_key,
    attempts.attempt,
    steps.step,
    from_ms(steps.start_ms) as start_at,
    from_ms(steps.end_ms) as end_at,
    (steps.end_ms - steps.start_ms) / 1000.0 as step_s,
    steps.median_step_ms / 1000.0 as median_step_s,
    steps.data_ms / 1000.0 as data_s,
    losses.straggler_rank,
    losses.straggler_wait_s,
    steps.fate,
    steps.is_recomputed,
    steps.tokens
from intermediate.int_train_steps as steps
inner join intermediate.int_attempts as attempts using (attempt_key)
left join losses using (attempt_key, step)
where
    of_teams(attempts.team)
    and in_cluster(attempts.cluster)
    and in_run(attempts.run_key)
    and in_window(steps.start_ms, steps.end_ms)
