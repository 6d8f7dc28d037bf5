-- Numbers that the scope's runs report in its window under names of their own, which nothing judges: such as statistics of
-- PyTorch's allocator, the gradient noise scale, how evenly experts are used.
-- grain: run_key, metric
-- access: team
-- metric: name of the field; reports: events with it
with attempts as (
    select distinct run_key, job_run_key
    from intermediate.int_attempts
    where
        in_window(start_ms, end_ms)
        and in_cluster(cluster)
        and of_owner(team, user_name, run_key, partition)
)

select
    attempts.run_key,
    metrics.metric,
    count(*) as reports,
    arg_min(metrics.value, metrics.at_ms) as first_value,
    arg_max(metrics.value, metrics.at_ms) as last_value,
    min(metrics.value) as lowest_value,
    max(metrics.value) as highest_value
from staging.stg_run_metrics as metrics
inner join intermediate.int_report_lives as lives
    on metrics.cluster = lives.cluster and metrics.run_id = lives.run_id
    and metrics.attempt is not distinct from lives.attempt
    and metrics.at_ms >= lives.from_ms and metrics.at_ms < lives.until_ms
inner join attempts using (job_run_key)
where in_window(metrics.at_ms, metrics.at_ms + 1)
group by attempts.run_key, metrics.metric
