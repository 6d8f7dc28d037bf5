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
),

used as (
    select attempts.cluster, attempts.job_name, attempts.gpus, attempts.run_key, avg(used.tensor_active_ratio) as tensor_ratio
    from intermediate.int_held_use as used
    inner join (
        select distinct cluster, job_name, gpus, run_key, job_run_key from intermediate.int_attempts where of_teams(team)
    ) as attempts using (job_run_key)
    group by all
),

tensors as (
    select used.run_key, any_value(used.tensor_ratio) as tensor_ratio, median(others.tensor_ratio) as peer_tensor_ratio
    from used
    inner join used as others
        on used.cluster = others.cluster and used.job_name = others.job_name and used.gpus = others.gpus
        and used.run_key <> others.run_key
    where used.run_key in (select run_key from slower)
    group by used.run_key
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
    ) || coalesce(printf(
        '; tensor cores active %.1f %% of the time, of the others %.1f %%',
        100 * tensors.tensor_ratio, 100 * tensors.peer_tensor_ratio
    ), '') as evidence,
    case
        when tensors.run_key is not null
            then 'Look for what keeps it off the tensor cores: data type, shapes, a library or driver that fell back to other kernels'
    end as what_to_do
from slower
inner join runs using (run_key)
left join tensors
    on slower.run_key = tensors.run_key
    -- who waits for half of the time has half of the activity, and of the speed
    and tensors.tensor_ratio < threshold('peer_tensor_share') * slower.peer_ratio * tensors.peer_tensor_ratio
