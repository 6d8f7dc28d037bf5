-- How a job run used each of its whole GPUs in the scope's window, by the ten-minute roll-up outside start-up, where at
-- least threshold low_use_min_ms of it was read. No filter restricts it, so that another one asks it again.
-- grain: job_run_key, gpu_uuid
-- evaluated: first
-- skip_if_empty: intermediate.int_held_bins
-- first_ms, last_ms: first and last moment of these ten minutes; bins: how many
-- use_metric: of use_ratio: SM active, else engine active, else GPU utilisation
-- busy_ratio: use in the busiest ten minutes
-- is_unused: active in no reading
select
    job_run_key,
    gpu_uuid,
    any_value(columns(['cluster', 'node', 'gpu_model'])),
    min(start_ms) as first_ms,
    max(start_ms) + ten_minutes_ms() as last_ms,
    count(*) as bins,
    min(use_metric) as use_metric,
    avg(columns([
        'use_ratio', 'gpu_busy_ratio', 'power_w', 'tensor_active_ratio', 'dram_active_ratio', 'sm_occupancy_ratio'
    ])),
    max(use_ratio) as busy_ratio,
    max(greatest(engine_max_ratio, use_max_ratio)) < threshold('idle_share_ratio') as is_unused,
    max(memory_used_bytes) as memory_peak_bytes
from intermediate.int_held_bins
where
    not is_starting
    and use_ratio is not null
    -- other GPUs of the node that nobody has were active meanwhile: they may be the ones
    and job_run_key not in (
        select job_run_key
        from intermediate.int_segments_in_window
        where category = 'unknown' and phase = 'gpu_assumed'
    )
group by job_run_key, gpu_uuid
having count(*) * ten_minutes_ms() >= threshold('low_use_min_ms')
