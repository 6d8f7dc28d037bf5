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
with inventory as materialized (
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

numbered as materialized (
    select
        inventory.*,
        dense_rank() over (order by cluster, node, gpu_model)::integer as place
    from inventory
),

readings as not materialized (select * from marts.device_power),

read_gpus as (
    select
        gpu_uuid,
        sum(columns(['power_w', 'capped', 'reasons'])),
        count(power_w) as powers,
        max(gpu_temperature_c) as gpu_temperature_c
    from readings
    group by gpu_uuid
),

peaks as (
    select
        numbered.place,
        quantile_cont(readings.peak_power_w, 0.99) as p99_power_w,
        quantile_cont(readings.peak_power_w / numbered.power_limit_w, 0.99) as p99_limit_ratio
    from readings
    inner join numbered using (gpu_uuid)
    group by numbered.place
),

of_nodes as (
    select
        numbered.place,
        any_value(columns(['cluster', 'node', 'gpu_model'])),
        count(*) as gpus,
        count(*) filter (where read_gpus.powers > 0) as read_gpus,
        avg(numbered.power_limit_w) as power_limit_w,
        sum(read_gpus.power_w) / nullif(sum(read_gpus.powers), 0) as mean_power_w,
        sum(read_gpus.capped) / nullif(sum(read_gpus.reasons), 0) as capped_ratio,
        arg_min(
            numbered.slowdown_temperature_c, numbered.slowdown_temperature_c - read_gpus.gpu_temperature_c
        ) as slowdown_temperature_c,
        max(read_gpus.gpu_temperature_c) as gpu_temperature_c,
        min(numbered.slowdown_temperature_c - read_gpus.gpu_temperature_c) as slowdown_margin_c
    from numbered
    left join read_gpus using (gpu_uuid)
    group by numbered.place
)

select
    cluster, node, gpu_model, gpus, read_gpus, power_limit_w, mean_power_w, p99_power_w, p99_limit_ratio, capped_ratio,
    slowdown_temperature_c, gpu_temperature_c, slowdown_margin_c
from of_nodes
left join peaks using (place)
