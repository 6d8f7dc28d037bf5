-- Readings of GPUs with the time in epoch ms.
-- place: in the order of the table: a load is stored series by series
-- ts: to filter by: the zones of the table are known for it, not for what is computed from it
-- grain: source, gpu_uuid, gpu_instance, ts_ms
select
    rowid as place,
    source,
    gpu_uuid,
    gpu_instance,
    ts,
    to_ms(ts) as ts_ms,
    engine_active_ratio,
    gpu_busy_ratio,
    sm_active_ratio,
    tensor_active_ratio,
    dram_active_ratio,
    power_w,
    energy_j,
    sm_clock_hz,
    clocks_event_reasons,
    coalesce(is_flagged, false) as is_flagged,
    gpu_temperature_c,
    memory_used_bytes
from raw.gpu_samples
