-- One reading of a GPU (or MIG instance): wide, canonical metrics, base units; null is not measured.
-- grain: source, gpu_uuid, gpu_instance, ts
-- times: by ts
create table raw.gpu_samples (
    source varchar not null,
    gpu_uuid varchar not null,
    gpu_instance varchar not null,      -- '' for the whole GPU
    ts timestamp not null,
    gpu_busy_ratio double,              -- GPU_UTIL: some kernel was resident
    memory_busy_ratio double,
    engine_active_ratio double,         -- GR_ENGINE_ACTIVE
    sm_active_ratio double,
    sm_occupancy_ratio double,
    tensor_active_ratio double,
    dram_active_ratio double,
    fp64_active_ratio double,
    fp32_active_ratio double,
    fp16_active_ratio double,
    power_w double,
    energy_j double,                    -- counter since driver load
    sm_clock_hz double,
    memory_clock_hz double,
    clocks_event_reasons bigint,        -- bitmask, reference.clocks_event_reasons
    gpu_temperature_c double,
    memory_temperature_c double,
    memory_used_bytes bigint,
    nvlink_tx_bytes_per_s double,
    nvlink_rx_bytes_per_s double,
    pcie_tx_bytes_per_s double,
    pcie_rx_bytes_per_s double,
    is_flagged boolean,                 -- a value was rejected (sentinel, out of range, incomplete GPM)
    flagged_metrics varchar,            -- which, with commas; 'gpm' for all shares of it; null: none, or an earlier version
    load_sequence bigint not null       -- state.ingested: the load that wrote the row as it is
);
