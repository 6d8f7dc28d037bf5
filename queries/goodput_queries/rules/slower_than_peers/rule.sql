-- skip_if_empty: marts.run_peers where peer_ratio < threshold('peer_speed_ratio')
with slower as (
    from marts.run_peers
    where
        peer_ratio < threshold('peer_speed_ratio')
        and peers >= threshold('peer_speed_runs')
        and steps >= threshold('peer_speed_steps')
),

retained as (
    select run_key, sum(gpu_ms) as gpu_ms, sum(cost) as cost
    from marts.run_categories
    where category in ('productive', 'step_unsplit', 'exposed_comm', 'straggler_wait', 'throttled')
    group by run_key
),

runs as (
    select
        run_key,
        any_value(cluster) as cluster,
        min(scope_start(start_ms)) as first_ms,
        max(scope_end(coalesce(end_ms, forever_ms()))) as last_ms
    from intermediate.int_attempts
    where in_window(start_ms, end_ms)
    group by run_key
)

select
    runs.cluster,
    run_key,
    from_ms(runs.first_ms) as start_at,
    from_ms(nullif(runs.last_ms, forever_ms())) as end_at,
    round(retained.gpu_ms * (1 - slower.peer_ratio))::bigint as gpu_ms,
    retained.cost * (1 - slower.peer_ratio) as cost,
    -- steps of two batch sizes have two lengths
    case when slower.speed_unit = 'steps' then 'unconfirmed' end as effect,
    case when slower.speed_unit = 'steps' then 'Not confirmed' else 'Likely' end as confidence,
    printf(
        '%.4g %s per second, %.0f %% of the median of %d other runs of its name, GPU model and size (%.4g)',
        slower.speed, slower.speed_unit, 100 * slower.peer_ratio, slower.peers, slower.peer_speed
    ) as evidence
from slower
inner join runs using (run_key)
inner join retained using (run_key)
