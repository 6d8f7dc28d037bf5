-- How late each rank was: its own work in steps beyond the median of the attempt, by buckets of the scope.
-- A rank whose waits nobody measures has no row: what it waited for others would count as its own work.
-- grain: run_key, attempt, rank, bucket_at
-- access: team
-- bucket_at: start of the bucket in which a step ended
-- late_ratio: work beyond the median of work, as a share of it, over the bucket's steps; 0 or more
-- late_s: the same in seconds; steps: number of steps
with worked as (
    select
        attempts.run_key,
        attempts.attempt,
        losses.rank,
        losses.work_ms - coalesce(losses.straggler_ms, 0) - coalesce(losses.comm_ms, 0) as own_ms,
        bucket_start(steps.end_ms) as bucket_ms,
        attempts.attempt_key
    from intermediate.int_rank_step_losses as losses
    inner join intermediate.int_attempts as attempts using (attempt_key)
    inner join intermediate.int_train_steps as steps using (attempt_key, step)
    where
        losses.measured_by is not null
        and not coalesce(losses.is_for_gang, false)
        and of_teams(attempts.team)
        and in_cluster(attempts.cluster)
        and in_run(attempts.run_key)
        and in_window(steps.start_ms, steps.end_ms)
),

medians as (
    select attempt_key, median(own_ms) as median_ms from worked group by attempt_key
),

ranks as (
    select attempt_key, rank, any_value(gpu_uuid) as gpu_uuid
    from intermediate.int_rank_gpus
    group by attempt_key, rank
)

select
    worked.run_key,
    worked.attempt,
    worked.rank,
    any_value(ranks.gpu_uuid) as gpu_uuid,
    from_ms(worked.bucket_ms) as bucket_at,
    sum(greatest(worked.own_ms - medians.median_ms, 0)) / nullif(sum(medians.median_ms), 0) as late_ratio,
    sum(greatest(worked.own_ms - medians.median_ms, 0)) / 1000.0 as late_s,
    count(*) as steps
from worked
inner join medians using (attempt_key)
left join ranks using (attempt_key, rank)
group by worked.run_key, worked.attempt, worked.rank, worked.bucket_ms
