-- How near the GPUs of a node come to their power limit and to their slowdown temperature, by the ten-minute roll-up.
-- Owners do not restrict it.
-- grain: cluster, node, gpu_model
-- evaluated: first
-- gpus: GPUs in the inventory; read_gpus: of them those with a power reading
-- power_limit_w: of one GPU, mean; null: no source reports it
-- mean_power_w: of one GPU; p99_power_w: 99th percentile of the highest reading of one GPU in ten minutes
-- p99_limit_ratio: 99th percentile of these readings over the limit of their GPU; null: power or limit is not known
-- capped_ratio: part of the readings with reasons that carry the power cap; null: no reading has reasons
-- slowdown_temperature_c: of the GPU of the least margin; gpu_temperature_c: of the hottest GPU
-- slowdown_margin_c: least distance of a GPU's highest temperature to its slowdown temperature
with inventory as (
    select
        gpu_uuid,
        arg_max(cluster, coalesce(start_at, make_timestamp(0))) as cluster,
        arg_max(node, coalesce(start_at, make_timestamp(0))) as node,
        any_value(gpu_model) as gpu_model,
        max(power_limit_w) as power_limit_w,
        max(slowdown_temperature_c) as slowdown_temperature_c
    from marts.gpus
    group by gpu_uuid
),

readings as not materialized (select * from marts.device_power),

hottest as (
    select gpu_uuid, max(gpu_temperature_c) as gpu_temperature_c from readings group by gpu_uuid
),

of_nodes as (
    select
        inventory.cluster,
        inventory.node,
        inventory.gpu_model,
        count(distinct inventory.gpu_uuid) filter (where readings.power_w is not null) as read_gpus,
        avg(readings.power_w) as mean_power_w,
        quantile_cont(readings.peak_power_w, 0.99) as p99_power_w,
        quantile_cont(readings.peak_power_w / inventory.power_limit_w, 0.99) as p99_limit_ratio,
        sum(readings.capped) / nullif(sum(readings.reasons), 0) as capped_ratio
    from inventory
    inner join readings using (gpu_uuid)
    group by inventory.cluster, inventory.node, inventory.gpu_model
),

of_gpus as (
    select
        inventory.cluster,
        inventory.node,
        inventory.gpu_model,
        count(*) as gpus,
        avg(inventory.power_limit_w) as power_limit_w,
        max(hottest.gpu_temperature_c) as gpu_temperature_c,
        arg_min(
            inventory.slowdown_temperature_c, inventory.slowdown_temperature_c - hottest.gpu_temperature_c
        ) as slowdown_temperature_c,
        min(inventory.slowdown_temperature_c - hottest.gpu_temperature_c) as slowdown_margin_c
    from inventory
    left join hottest using (gpu_uuid)
    group by inventory.cluster, inventory.node, inventory.gpu_model
)

select
    of_gpus.cluster,
    of_gpus.node,
    of_gpus.gpu_model,
    of_gpus.gpus,
    coalesce(of_nodes.read_gpus, 0) as read_gpus,
    of_gpus.power_limit_w,
    of_nodes.mean_power_w,
    of_nodes.p99_power_w,
    of_nodes.p99_limit_ratio,
    of_nodes.capped_ratio,
    of_gpus.slowdown_temperature_c,
    of_gpus.gpu_temperature_c,
    of_gpus.slowdown_margin_c
from of_gpus
left join of_nodes
    on of_gpus.cluster = of_nodes.cluster
    and of_gpus.node = of_nodes.node
    and of_gpus.gpu_model is not distinct from of_nodes.gpu_model
