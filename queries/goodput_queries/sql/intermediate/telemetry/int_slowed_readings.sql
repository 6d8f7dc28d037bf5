-- Readings of GPUs in hours in which one of them carried a slowdown reason (not the power cap alone).
-- grain: none (two sources may read a GPU at one moment)
-- is_slowed: the reading carries one
-- materialised: hourly, since it needs a pass over all readings and few have one
with reasons as (
    select bit_or(bit_value::bigint) as mask
    from reference.clocks_event_reasons
    where reason in ('hw_slowdown', 'sw_thermal', 'hw_thermal', 'hw_power_brake')
),

slowed as materialized (
    select distinct gpu_uuid, ts_ms // one_hour_ms() * one_hour_ms() as hour_ms
    from staging.stg_gpu_samples
    where
        ts >= from_ms(build_from_ms())
        and ts < from_ms(build_to_ms())
        and clocks_event_reasons & (select mask from reasons) <> 0
)

select
    samples.gpu_uuid,
    slowed.hour_ms,
    samples.ts_ms,
    samples.clocks_event_reasons & reasons.mask <> 0 as is_slowed
from staging.stg_gpu_samples as samples
inner join slowed
    on samples.gpu_uuid = slowed.gpu_uuid
    and samples.ts_ms >= slowed.hour_ms
    and samples.ts_ms < slowed.hour_ms + one_hour_ms()
cross join reasons
where
    samples.ts >= from_ms(build_from_ms())
    and samples.ts < from_ms(build_to_ms())
    and samples.clocks_event_reasons is not null
