-- Metrics of the scope's nodes by hour: means of the ten minutes that were read, and the sum of energy.
-- grain: cluster, node, hour_ms
-- hour_ms: start of the hour, epoch ms
-- read_s: seconds of the hour in ten minutes with a sample
-- power_w, sm_active_ratio, engine_active_ratio: mean over the ten minutes that have it
-- energy_j: sum of the increases inside the ten minutes
-- gpu_temperature_c: of the hottest GPU
select
    cluster,
    node,
    start_ms // one_hour_ms() * one_hour_ms() as hour_ms,
    600 * count(*) as read_s,
    avg(power_w) as power_w,
    sum(energy_j) as energy_j,
    max(gpu_temperature_c) as gpu_temperature_c,
    avg(sm_active_ratio) as sm_active_ratio,
    avg(engine_active_ratio) as engine_active_ratio
from marts.node_metrics
group by cluster, node, start_ms // one_hour_ms() * one_hour_ms()
