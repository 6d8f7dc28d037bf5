-- Readings of GPUs in hours in which one of them carried a slowdown reason (not the power cap alone).
-- grain: none (two sources may read a GPU at one moment)
-- is_slowed: the reading carries one
-- materialised: hourly, since it needs a pass over all readings and few have one
with reasons as (
    select bit_or(bit_value::bigint) as mask
    from reference.clocks_event_reasons
    where reason in ('hw_slowdown', 'sw_thermal', 'hw_thermal', 'hw_power_brake')
),

readings as (
    select gpu_uuid, ts_ms, ts_ms // 3600000 * 3600000 as hour_ms, clocks_event_reasons
    from staging.stg_gpu_samples
    where ts_ms >= build_from_ms() and ts_ms < build_to_ms() and clocks_event_reasons is not null
),

slowed as (
    select distinct readings.gpu_uuid, readings.hour_ms
    from readings
    cross join reasons
    where readings.clocks_event_reasons & reasons.mask <> 0
)

select
    readings.gpu_uuid,
    readings.hour_ms,
    readings.ts_ms,
    readings.clocks_event_reasons & reasons.mask <> 0 as is_slowed
from readings
semi join slowed using (gpu_uuid, hour_ms)
cross join reasons
