-- skip_if_empty: intermediate.int_attempts where has_events and (cluster, job_name, gpus) in (select (cluster, job_name, gpus) from intermediate.int_attempts where has_events group by all having count(distinct run_key) > threshold('peer_speed_runs'))
with slower as (
    from marts.run_peers
    where
        peer_ratio < threshold('peer_speed_ratio')
        and peers >= threshold('peer_speed_runs')
        and steps >= threshold('peer_speed_steps')
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
        sum(steps.step_ms * attempts.gpus) as step_ms,
        avg(prices.price_per_gpu_h) as price
    from intermediate.int_attempts as attempts
    inner join steps using (attempt_key)
    left join intermediate.int_job_run_prices as prices using (job_run_key)
    where attempts.run_key in (select run_key from slower)
    group by attempts.cluster, attempts.run_key
)

select
    runs.cluster,
    run_key,
    from_ms(runs.first_ms) as start_at,
    from_ms(nullif(runs.last_ms, forever_ms())) as end_at,
    round(runs.step_ms * (1 - slower.peer_ratio))::bigint as gpu_ms,
    runs.step_ms * (1 - slower.peer_ratio) / 3600000.0 * runs.price as cost,
    -- steps of two batch sizes have two lengths
    case when slower.speed_unit = 'steps' then 'unconfirmed' end as effect,
    case when slower.speed_unit = 'steps' then 'Not confirmed' else 'Likely' end as confidence,
    printf(
        '%.4g %s per second, %.0f %% of the median of %d other runs of its name, GPU model and size (%.4g)',
        slower.speed, slower.speed_unit, 100 * slower.peer_ratio, slower.peers, slower.peer_speed
    ) as evidence
from slower
inner join runs using (run_key)
