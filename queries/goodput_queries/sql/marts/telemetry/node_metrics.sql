-- Metrics of the scope's nodes by ten minutes, over the GPUs that were read. Power, energy and temperature are those of
-- the device, which the series of its instances repeat; activity of a GPU is the mean of its instances.
-- grain: cluster, node, start_ms
-- start_ms: start of the ten minutes, epoch ms
-- gpus: number of GPUs that were read
-- power_w: sum of the GPUs' mean power; null where no GPU has it
-- energy_j: sum of the increases inside the ten minutes
-- gpu_temperature_c: of the hottest GPU
-- sm_active_ratio, engine_active_ratio, gpu_busy_ratio: mean of the GPUs
-- thermal_gpus: number of GPUs that carried a thermal slowdown reason; null where no GPU reports reasons
-- a GPU that is not partitioned has one row in ten minutes: grouping by each of them takes longer than all the rest
with partitioned as (
    select gpu_uuid from state.reading_series group by gpu_uuid having count(distinct gpu_instance) > 1
),

series as (
    select
        metrics.cluster,
        metrics.node,
        metrics.start_ms,
        partitioned.gpu_uuid,
        columns(['power_w', 'sm_active_ratio', 'engine_active_ratio', 'gpu_busy_ratio']).mean,
        metrics.energy_j.gain as energy_j,
        metrics.gpu_temperature_c.max as gpu_temperature_c,
        case
            when metrics.clocks_event_reasons.n > 0
                then metrics.clocks_event_reasons.sw_thermal + metrics.clocks_event_reasons.hw_thermal > 0
        end as is_thermal
    from marts.gpu_metrics as metrics
    left join partitioned using (gpu_uuid)
    where metrics.node is not null
),

-- a row for each partitioned GPU, and one for all the others together
groups as (
    select
        cluster,
        node,
        start_ms,
        case when gpu_uuid is null then count(*) else 1 end as gpus,
        case when gpu_uuid is null then sum(power_w) else max(power_w) end as power_w,
        case when gpu_uuid is null then sum(energy_j) else max(energy_j) end as energy_j,
        max(gpu_temperature_c) as gpu_temperature_c,
        avg(columns(['sm_active_ratio', 'engine_active_ratio', 'gpu_busy_ratio'])),
        case when gpu_uuid is null then count(sm_active_ratio) else 1 end as sm_active_gpus,
        case when gpu_uuid is null then count(engine_active_ratio) else 1 end as engine_active_gpus,
        case when gpu_uuid is null then count(gpu_busy_ratio) else 1 end as gpu_busy_gpus,
        case
            when count(is_thermal) = 0 then null
            when gpu_uuid is null then count_if(is_thermal)
            else bool_or(is_thermal)::integer
        end as thermal_gpus
    from series
    group by cluster, node, start_ms, gpu_uuid
)

select
    cluster,
    node,
    start_ms,
    sum(gpus)::bigint as gpus,
    sum(power_w) as power_w,
    sum(energy_j) as energy_j,
    max(gpu_temperature_c) as gpu_temperature_c,
    weighted_avg(sm_active_ratio, sm_active_gpus) as sm_active_ratio,
    weighted_avg(engine_active_ratio, engine_active_gpus) as engine_active_ratio,
    weighted_avg(gpu_busy_ratio, gpu_busy_gpus) as gpu_busy_ratio,
    sum(thermal_gpus)::bigint as thermal_gpus
from groups
group by cluster, node, start_ms
