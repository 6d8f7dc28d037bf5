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
        rolled_up_rate(gpu_busy_ratio) as gpu_busy_ratio,
        rolled_up_rate(memory_busy_ratio) as memory_busy_ratio,
        rolled_up_rate(engine_active_ratio) as engine_active_ratio,
        rolled_up_rate(sm_active_ratio) as sm_active_ratio,
        rolled_up_rate(sm_occupancy_ratio) as sm_occupancy_ratio,
        rolled_up_rate(tensor_active_ratio) as tensor_active_ratio,
        rolled_up_rate(dram_active_ratio) as dram_active_ratio,
        rolled_up_rate(fp64_active_ratio) as fp64_active_ratio,
        rolled_up_rate(fp32_active_ratio) as fp32_active_ratio,
        rolled_up_rate(fp16_active_ratio) as fp16_active_ratio,
        rolled_up_state(power_w, ts) as power_w,
        rolled_up_state(sm_clock_hz, ts) as sm_clock_hz,
        rolled_up_state(memory_clock_hz, ts) as memory_clock_hz,
        rolled_up_state(gpu_temperature_c, ts) as gpu_temperature_c,
        rolled_up_state(memory_temperature_c, ts) as memory_temperature_c,
        rolled_up_state(memory_used_bytes, ts) as memory_used_bytes,
        rolled_up_rate(nvlink_tx_bytes_per_s) as nvlink_tx_bytes_per_s,
        rolled_up_rate(nvlink_rx_bytes_per_s) as nvlink_rx_bytes_per_s,
        rolled_up_rate(pcie_tx_bytes_per_s) as pcie_tx_bytes_per_s,
        rolled_up_rate(pcie_rx_bytes_per_s) as pcie_rx_bytes_per_s,
        rolled_up_counter(energy_j, ts) as energy_j,
        rolled_up_reasons(clocks_event_reasons) as clocks_event_reasons
    from staging.stg_gpu_samples
    where ts >= from_ms(build_from_ms()) and ts < from_ms(build_to_ms())
    group by all
)

select * exclude (bucket), bucket // 6 * one_hour_ms() as hour_ms, bucket * ten_minutes_ms() as start_ms
from buckets
