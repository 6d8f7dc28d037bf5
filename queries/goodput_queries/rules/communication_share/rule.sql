-- skip_if_empty: intermediate.int_step_splits where category = 'exposed_comm'
with shares as (
    select
        run_key,
        sum(gpu_ms) as step_ms,
        sum(gpu_ms) filter (where category = 'exposed_comm') as comm_ms,
        sum(cost) filter (where category = 'exposed_comm') as comm_cost
    from marts.run_categories
    where category in ('productive', 'step_unsplit', 'exposed_comm', 'straggler_wait', 'throttled')
    group by run_key
    having comm_ms >= threshold('comm_share_node') * step_ms
),

runs as (
    select
        attempts.run_key,
        any_value(attempts.cluster) as cluster,
        min(scope_start(attempts.start_ms)) as first_ms,
        max(scope_end(coalesce(attempts.end_ms, forever_ms()))) as last_ms,
        max(attempts.gpus) as gpus,
        count(distinct ranks.node) as nodes,
        case when nodes = 1 then threshold('comm_share_node') else threshold('comm_share_nodes') end as most_ratio
    from intermediate.int_attempts as attempts
    inner join intermediate.int_rank_gpus as ranks using (attempt_key)
    where attempts.run_key in (select run_key from shares) and in_window(attempts.start_ms, attempts.end_ms)
    group by attempts.run_key
)

select
    runs.cluster,
    run_key,
    from_ms(runs.first_ms) as start_at,
    from_ms(nullif(runs.last_ms, forever_ms())) as end_at,
    round(shares.comm_ms - runs.most_ratio * shares.step_ms)::bigint as gpu_ms,
    shares.comm_cost * (1 - runs.most_ratio * shares.step_ms / shares.comm_ms) as cost,
    'Confirmed' as confidence,
    printf(
        'exposed communication takes %.1f %% of retained step time on %d GPUs of %s; up to %.0f %% is usual there',
        100 * shares.comm_ms / shares.step_ms, runs.gpus, counted(runs.nodes, 'node'), 100 * runs.most_ratio
    ) as evidence
from shares
inner join runs using (run_key)
where shares.comm_ms >= runs.most_ratio * shares.step_ms and runs.gpus > 1
