-- Power and temperature of the scope's GPUs by ten minutes: those of the device, which the series of its instances repeat.
-- grain: gpu_uuid, start_ms
-- evaluated: first
-- start_ms: start of the ten minutes, epoch ms
-- power_w: mean; peak_power_w: highest reading; null: none
-- gpu_temperature_c: highest reading
-- capped, reasons: samples with a power cap among the reasons for lower clocks, of those with reasons
-- a GPU that is not partitioned has one row in ten minutes: grouping by each of them takes longer than all the rest
with partitioned as (
    select gpu_uuid from state.reading_series group by gpu_uuid having count(distinct gpu_instance) > 1
),

readings as not materialized (
    select
        gpu_uuid,
        start_ms,
        power_w.mean as power_w,
        power_w.max as peak_power_w,
        gpu_temperature_c.max as gpu_temperature_c,
        clocks_event_reasons.power_cap as capped,
        clocks_event_reasons.n as reasons
    from marts.gpu_metrics
)

select * from readings where gpu_uuid not in (from partitioned)
union all
select
    gpu_uuid,
    start_ms,
    max(columns(['power_w', 'peak_power_w', 'gpu_temperature_c', 'capped', 'reasons']))
from readings
where gpu_uuid in (from partitioned)
group by gpu_uuid, start_ms
