-- How often heat, the power brake or the board lowered the clocks of a GPU, by hours of the ten-minute roll-up or, where
-- readings carry no reasons, of the throttle counters. A power cap is not here: at full power it is normal.
-- Owners do not restrict it.
-- grain: gpu_uuid, reason
-- evaluated: first
-- throttled_hours: hours (UTC) of the window with the reason; read_hours: hours with readings that could show it
-- recurrence: chronic, where at least chronic_throttle_ratio of the hours read have the reason, else passing; null: fewer
--  than chronic_throttle_hours were read
-- gpu_temperature_c: highest in the window; slowdown_margin_c: slowdown temperature less this; null: either is not known
with bins as not materialized (
    select cluster, node, gpu_index, gpu_uuid, start_ms // one_hour_ms() as hour, clocks_event_reasons as reasons,
        gpu_temperature_c.max as gpu_temperature_c
    from marts.gpu_metrics
),

slowed_bins as (
    select gpu_uuid, hour, reasons
    from bins
    where reasons.hw_slowdown > 0 or reasons.sw_thermal > 0 or reasons.hw_thermal > 0 or reasons.power_brake > 0
),

slowed as (
    select gpu_uuid, 'hw_slowdown' as reason, hour from slowed_bins where reasons.hw_slowdown > 0
    union
    select gpu_uuid, 'sw_thermal', hour from slowed_bins where reasons.sw_thermal > 0
    union
    select gpu_uuid, 'hw_thermal', hour from slowed_bins where reasons.hw_thermal > 0
    union
    select gpu_uuid, 'hw_power_brake', hour from slowed_bins where reasons.power_brake > 0
    union
    select gpu_uuid, reason, unnest(range(start_ms // one_hour_ms(), (end_ms - 1) // one_hour_ms() + 1))
    from intermediate.int_throttle_counters
    where reason <> 'sw_power_cap'
),

of_reasons as (select gpu_uuid, reason, count(*) as throttled_hours from slowed group by gpu_uuid, reason),

of_gpus as (
    select
        gpu_uuid,
        arg_max(columns(['cluster', 'node', 'gpu_index']), hour),
        coalesce(
            nullif(count(distinct hour) filter (where reasons.n > 0), 0), count(distinct hour)
        ) as read_hours,
        max(gpu_temperature_c) as gpu_temperature_c
    from bins
    where gpu_uuid in (select gpu_uuid from of_reasons)
    group by gpu_uuid
),

reported as (
    select gpu_uuid, arg_max(value, ts) as slowdown_temperature_c
    from staging.stg_gpu_samples_other
    where
        metric = 'slowdown_temperature_c'
        and value is not null
        and ts >= from_ms(scope_from_ms())
        and ts < scope_to_at()
        and gpu_uuid in (select gpu_uuid from of_reasons)
    group by gpu_uuid
),

inventory as (
    select gpu_uuid, max(slowdown_temperature_c) as slowdown_temperature_c from staging.stg_gpus group by gpu_uuid
)

select
    of_gpus.*,
    of_reasons.reason,
    of_reasons.throttled_hours,
    of_reasons.throttled_hours / of_gpus.read_hours as throttled_ratio,
    case
        when of_gpus.read_hours < threshold('chronic_throttle_hours') then null
        when throttled_ratio >= threshold('chronic_throttle_ratio') then 'chronic'
        else 'passing'
    end as recurrence,
    coalesce(reported.slowdown_temperature_c, inventory.slowdown_temperature_c) as slowdown_temperature_c,
    coalesce(reported.slowdown_temperature_c, inventory.slowdown_temperature_c) - of_gpus.gpu_temperature_c
        as slowdown_margin_c
from of_reasons
inner join of_gpus using (gpu_uuid)
left join reported using (gpu_uuid)
left join inventory using (gpu_uuid)
