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
    gpu_busy_ratio,
    memory_busy_ratio,
    engine_active_ratio,
    sm_active_ratio,
    sm_occupancy_ratio,
    tensor_active_ratio,
    dram_active_ratio,
    fp64_active_ratio,
    fp32_active_ratio,
    fp16_active_ratio,
    power_w,
    energy_j,
    sm_clock_hz,
    memory_clock_hz,
    clocks_event_reasons,
    gpu_temperature_c,
    memory_temperature_c,
    memory_used_bytes,
    nvlink_tx_bytes_per_s,
    nvlink_rx_bytes_per_s,
    pcie_tx_bytes_per_s,
    pcie_rx_bytes_per_s,
    coalesce(is_flagged, false) as is_flagged,
    flagged_metrics
from raw.gpu_samples
