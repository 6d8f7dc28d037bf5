-- Metrics of GPUs and GPU instances by ten minutes, for charts of long windows. A part of a metric is null where no
-- sample has it; a bucket without a sample has no row.
-- grain: source, gpu_uuid, gpu_instance, start_ms
-- start_ms: start of the ten minutes, epoch ms
-- samples, flagged_samples: number of samples; of them those with a rejected value
-- energy_j: counter: first, last, gain (its increase inside the ten minutes) and n
-- clocks_event_reasons: number of samples with each reason, and n, of those that carry the bitmask
-- materialised: hourly, since it needs a pass over all readings and outlives them
with buckets as (
    select
        source,
        gpu_uuid,
        gpu_instance,
        ts_ms // ten_minutes_ms() as bucket,
        count(*)::integer as samples,
        count_if(is_flagged)::integer as flagged_samples,
        rolled_up_rate(columns([
            'gpu_busy_ratio', 'memory_busy_ratio', 'engine_active_ratio', 'sm_active_ratio', 'sm_occupancy_ratio',
            'tensor_active_ratio', 'dram_active_ratio', 'fp64_active_ratio', 'fp32_active_ratio', 'fp16_active_ratio',
            'nvlink_tx_bytes_per_s', 'nvlink_rx_bytes_per_s', 'pcie_tx_bytes_per_s', 'pcie_rx_bytes_per_s'
        ])),
        rolled_up_state(columns([
            'power_w', 'sm_clock_hz', 'memory_clock_hz', 'gpu_temperature_c', 'memory_temperature_c',
            'memory_used_bytes'
        ]), ts),
        rolled_up_counter(energy_j, ts) as energy_j,
        rolled_up_reasons(clocks_event_reasons) as clocks_event_reasons
    from staging.stg_gpu_samples
    where ts >= from_ms(build_from_ms()) and ts < from_ms(build_to_ms())
    group by all
)

select * exclude (bucket), bucket // 6 * one_hour_ms() as hour_ms, bucket * ten_minutes_ms() as start_ms
from buckets
