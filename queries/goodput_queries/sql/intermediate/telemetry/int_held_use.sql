-- How a job run used each of its whole GPUs in the scope's window, by the ten-minute roll-up outside start-up, where at
-- least threshold low_use_min_ms of it was read; where a run is chosen, of its job runs. No other filter restricts it,
-- so that another one asks it again.
-- grain: job_run_key, gpu_uuid
-- evaluated: first
-- skip_if_empty: intermediate.int_gpu_metrics
-- first_ms, last_ms: first and last moment of these ten minutes; bins: how many
-- use_metric: of use_ratio: SM active, else engine active, else GPU utilisation
-- busy_ratio: use in the busiest ten minutes
-- is_unused: active in no reading
with cut as not materialized (
    from intermediate.int_gpu_metrics
    where hour_ms > scope_from_ms() - one_hour_ms() and hour_ms < scope_to_ms() and not is_whole_hour(hour_ms)
),

hours as (
    from intermediate.int_held_hours where is_whole_hour(hour_ms)
    union all by name
    from held_hours('cut', scope_from_ms(), scope_to_ms())
)

select
    job_run_key,
    gpu_uuid,
    any_value(columns(['cluster', 'node', 'gpu_model'])),
    min(first_ms) as first_ms,
    max(last_ms) as last_ms,
    sum(bins)::bigint as bins,
    min(use_metric) as use_metric,
    mean_of(columns([
        'use_ratio', 'gpu_busy_ratio', 'power_w', 'tensor_active_ratio', 'dram_active_ratio', 'sm_occupancy_ratio'
    ])),
    max(busy_ratio) as busy_ratio,
    max(most_ratio) < threshold('idle_share_ratio') as is_unused,
    max(memory_peak_bytes) as memory_peak_bytes
from hours
where
    (
        chosen_run() is null
        or job_run_key in (select job_run_key from intermediate.int_job_run_owners where run_key = chosen_run())
    )
    -- other GPUs of the node that nobody has were active meanwhile: they may be the ones
    and job_run_key not in (
        select job_run_key
        from intermediate.int_segments_in_window
        where category = 'unknown' and phase = 'gpu_assumed'
    )
group by job_run_key, gpu_uuid
having sum(bins) * ten_minutes_ms() >= threshold('low_use_min_ms')
