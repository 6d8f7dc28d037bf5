-- Nodes that were wholly free, with no job that could have used them, for the last hours of the scope's window, and what switching
-- them off would have saved: of their GPUs alone, the rest of a server draws more.
-- grain: cluster, node
-- since_at: start of these hours; idle_s: their length, from threshold idle_node_ms on; gpus: number
-- power_w: mean of a GPU in them; null: no reading; energy_kwh: of all its GPUs; electricity_cost: at the tariffs of the hours, as
--  statements charge it; null: an hour has none
with hours as (
    select cluster, node, hour_ms, any_value(gpu_model) as gpu_model, sum(gpu_ms)::bigint as gpu_ms,
        bool_and(category = 'idle_no_demand' or gpu_ms = 0) as is_idle
    from marts.ledger_scoped_by_node
    group by cluster, node, hour_ms
),

last_hours as (
    select *
    from hours
    window of_node as (partition by cluster, node)
    qualify
        is_idle
        and hour_ms > coalesce(max(hour_ms) filter (where not is_idle) over of_node, -1)
        and max(hour_ms) over of_node = max(hour_ms) over (partition by cluster)
),

gpus as (
    select cluster, node, count(distinct gpu_uuid) as gpus from marts.gpus group by cluster, node
),

nodes as (
    select
        last_hours.cluster,
        last_hours.node,
        any_value(last_hours.gpu_model) as gpu_model,
        any_value(gpus.gpus) as gpus,
        min(last_hours.hour_ms) as since_ms,
        sum(last_hours.gpu_ms) as gpu_ms,
        case when count(tariffs.price_per_kwh) = count(*) then sum(last_hours.gpu_ms * tariffs.price_per_kwh::double) end as ms_price
    from last_hours
    inner join gpus using (cluster, node)
    left join marts.statement_tariffs as tariffs using (cluster, hour_ms)
    group by last_hours.cluster, last_hours.node
    having sum(last_hours.gpu_ms) / any_value(gpus.gpus) >= threshold('idle_node_ms')
),

powers as (
    select nodes.cluster, nodes.node, avg(readings.power_w) as power_w
    from nodes
    inner join (select distinct cluster, node, gpu_uuid from marts.gpus) as units using (cluster, node)
    inner join marts.device_power as readings
        on units.gpu_uuid = readings.gpu_uuid and readings.start_ms >= nodes.since_ms
    group by nodes.cluster, nodes.node
)

select
    nodes.cluster,
    nodes.node,
    nodes.gpu_model,
    nodes.gpus,
    from_ms(scope_start(nodes.since_ms)) as since_at,
    nodes.gpu_ms / nodes.gpus / 1000 as idle_s,
    powers.power_w,
    nodes.gpu_ms * powers.power_w / 3.6e9 as energy_kwh,
    nodes.ms_price * powers.power_w / 3.6e9 as electricity_cost
from nodes
left join powers using (cluster, node)
