-- skip_if_empty: intermediate.int_step_splits where category = 'exposed_comm'
with comm as (
    select
        attempt_key,
        sum(scope_end(end_ms) - scope_start(start_ms)) filter (where gpu_uuid is not null) as of_gpus_ms,
        sum(scope_end(end_ms) - scope_start(start_ms)) filter (where gpu_uuid is null) as of_gang_ms
    from intermediate.int_step_splits
    where category = 'exposed_comm' and in_window(start_ms, end_ms)
    group by attempt_key
),

steps as (
    select attempt_key, sum(scope_end(end_ms) - scope_start(start_ms)) as step_ms
    from intermediate.int_train_steps
    where fate = 'kept' and in_window(start_ms, end_ms)
    group by attempt_key
),

runs as (
    select
        attempts.cluster,
        attempts.run_key,
        min(scope_start(attempts.start_ms)) as first_ms,
        max(scope_end(coalesce(attempts.end_ms, forever_ms()))) as last_ms,
        max(attempts.gpus) as gpus,
        arg_max(attempts.job_run_key, attempts.gpus) as job_run_key,
        sum(steps.step_ms * attempts.gpus) as step_ms,
        sum(coalesce(comm.of_gpus_ms, 0) + coalesce(comm.of_gang_ms, 0) * attempts.gpus) as comm_ms,
        avg(prices.price_per_gpu_h) as price
    from comm
    inner join steps using (attempt_key)
    inner join intermediate.int_attempts as attempts using (attempt_key)
    left join intermediate.int_job_run_prices as prices using (job_run_key)
    where
        of_owner(attempts.team, attempts.user_name, attempts.run_key, attempts.partition)
        and in_cluster(attempts.cluster)
    group by attempts.cluster, attempts.run_key
    having comm_ms >= threshold('comm_share_node') * sum(steps.step_ms * attempts.gpus) and max(attempts.gpus) > 1
),

placed as (
    select runs.*, nodes.nodes,
        case when nodes.nodes = 1 then threshold('comm_share_node') else threshold('comm_share_nodes') end as most_ratio
    from runs
    inner join (
        select job_run_key, count(distinct node) as nodes
        from intermediate.int_holds
        where job_run_key in (select job_run_key from runs)
        group by job_run_key
    ) as nodes using (job_run_key)
)

select
    cluster,
    run_key,
    from_ms(first_ms) as start_at,
    from_ms(nullif(last_ms, forever_ms())) as end_at,
    round(comm_ms - most_ratio * step_ms)::bigint as gpu_ms,
    (comm_ms - most_ratio * step_ms) / 3600000.0 * price as cost,
    'Confirmed' as confidence,
    printf(
        'exposed communication takes %.1f %% of retained steps on %d GPUs of %s; up to %.0f %% is usual there',
        100 * comm_ms / step_ms, gpus, counted(nodes, 'node'), 100 * most_ratio
    ) as evidence
from placed
where comm_ms >= most_ratio * step_ms
