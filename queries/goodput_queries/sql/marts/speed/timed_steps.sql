-- Steps by which the speed of the scope's runs is judged: of attempts in the scope's window all but the first step, and
-- those that every rank reported (a killed process takes its last lines with it, and its tokens).
-- grain: attempt_key, step
-- access: team
-- step_ms: duration in the gang; compute_ms: of it without the longest data wait of a rank
-- tokens, samples, flops: of the gang; null: not reported
-- step_of_attempt: distance of the step from the first one of its attempt
with attempts as (
    select attempt_key, run_key, gpus
    from intermediate.int_attempts
    where
        in_window(start_ms, end_ms)
        and of_owner(team, user_name, run_key, partition)
        and in_cluster(cluster)
),

edges as (
    select attempt_key, min(step) as first_step, max(ranks) as ranks
    from intermediate.int_train_steps
    semi join attempts using (attempt_key)
    group by attempt_key
)

select
    attempts.run_key,
    steps.* exclude (run_key, ranks, data_ms, is_recomputed, median_step_ms),
    attempts.gpus,
    steps.end_ms - steps.start_ms as step_ms,
    steps.end_ms - steps.start_ms - least(coalesce(steps.data_ms, 0), steps.end_ms - steps.start_ms) as compute_ms,
    steps.step - edges.first_step as step_of_attempt
from intermediate.int_train_steps as steps
inner join edges using (attempt_key)
inner join attempts using (attempt_key)
where steps.step > edges.first_step and steps.ranks = edges.ranks
