-- Metrics of the scope's nodes by ten minutes, over the GPUs that were read. Power, energy and temperature are those of
-- the device, which the series of its instances repeat; activity of a GPU is the mean of its instances.
-- grain: cluster, node, start_ms
-- start_ms: start of the ten minutes, epoch ms
-- gpus: number of GPUs that were read
-- power_w: sum of the GPUs' mean power; null where no GPU has it
-- power_gpus: number of GPUs that power_w is the sum of
-- energy_j: sum of the increases inside the ten minutes
-- gpu_temperature_c: of the hottest GPU
-- sm_active_ratio, engine_active_ratio, gpu_busy_ratio: mean of the GPUs
-- thermal_gpus: number of GPUs that carried a thermal slowdown reason; null where no GPU reports reasons
with of_gpus as (
    select
        cluster,
        node,
        start_ms,
        gpu_uuid,
        max(power_w.mean) as power_w,
        max(energy_j.gain) as energy_j,
        max(gpu_temperature_c.max) as gpu_temperature_c,
        avg(sm_active_ratio.mean) as sm_active_ratio,
        avg(engine_active_ratio.mean) as engine_active_ratio,
        avg(gpu_busy_ratio.mean) as gpu_busy_ratio,
        bool_or(case
            when clocks_event_reasons.n > 0
                then clocks_event_reasons.sw_thermal + clocks_event_reasons.hw_thermal > 0
        end) as is_thermal
    from marts.gpu_metrics
    where node is not null
    group by cluster, node, start_ms, gpu_uuid
)

select
    cluster,
    node,
    start_ms,
    count(*) as gpus,
    sum(power_w) as power_w,
    count(power_w) as power_gpus,
    sum(energy_j) as energy_j,
    max(gpu_temperature_c) as gpu_temperature_c,
    avg(sm_active_ratio) as sm_active_ratio,
    avg(engine_active_ratio) as engine_active_ratio,
    avg(gpu_busy_ratio) as gpu_busy_ratio,
    case when count(is_thermal) > 0 then count(*) filter (where is_thermal) end as thermal_gpus
from of_gpus
group by cluster, node, start_ms
