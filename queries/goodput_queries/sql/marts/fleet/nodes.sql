-- Nodes in the scope: their GPU time, their telemetry and the events of their GPUs in the window.
-- grain: cluster, node
-- evaluated: first
-- rack, rack_row, feed: where it stands: rack, row of racks, power feed; null: the inventory does not have it
-- gpus: number of GPUs in the inventory; read_gpus: of them with a reading in the window
-- capacity_ms, held_ms, useful_ms, wasted_ms: milliseconds of a whole GPU: capacity, allocated, useful, badput
-- power_w: mean over the ten minutes with a reading, of the GPUs that were read
-- gpu_temperature_c: of the hottest GPU; thermal_s: seconds in ten minutes with a thermal slowdown reason, null where no
--  GPU reports reasons
-- events: Xid and other events of severity above info; last_event_at: the latest of them
with ledger as (
    select
        scoped.cluster,
        scoped.node,
        sum(scoped.gpu_ms)::bigint as capacity_ms,
        coalesce(sum(scoped.gpu_ms) filter (where categories."group" = 'held'), 0)::bigint as held_ms,
        coalesce(sum(scoped.gpu_ms) filter (where is_useful(scoped.category)), 0)::bigint as useful_ms,
        coalesce(
            sum(scoped.gpu_ms) filter (where kind_of(scoped.category, categories.kind) = 'badput'), 0
        )::bigint as wasted_ms,
        sum(scoped.cost) filter (where kind_of(scoped.category, categories.kind) = 'badput') as wasted_cost
    from marts.ledger_scoped_by_node as scoped
    inner join reference.gpu_second_categories as categories using (category)
    group by scoped.cluster, scoped.node
),

inventory as (
    select
        cluster,
        node,
        count(distinct gpu_uuid) as gpus,
        any_value(gpu_model) as gpu_model
    from marts.gpus
    group by cluster, node
),

telemetry as (
    select
        cluster,
        node,
        max(gpus) as read_gpus,
        avg(power_w) as power_w,
        max(gpu_temperature_c) as gpu_temperature_c,
        600 * (count(thermal_gpus) filter (where thermal_gpus > 0))
        + case when count(thermal_gpus) = 0 then null else 0 end as thermal_s
    from marts.node_metrics
    group by cluster, node
),

events as (
    select cluster, node, count(*) as events, max(event_at) as last_event_at
    from marts.gpu_events
    where coalesce(severity, 'warning') <> 'info'
    group by cluster, node
)

select
    cluster,
    node,
    racks.rack,
    racks.rack_row,
    racks.feed,
    inventory.gpu_model,
    coalesce(inventory.gpus, 0) as gpus,
    coalesce(telemetry.read_gpus, 0) as read_gpus,
    ledger.* exclude (cluster, node),
    telemetry.power_w,
    telemetry.gpu_temperature_c,
    telemetry.thermal_s,
    coalesce(events.events, 0) as events,
    events.last_event_at
from ledger
left join staging.stg_node_racks as racks using (cluster, node)
left join inventory using (cluster, node)
left join telemetry using (cluster, node)
left join events using (cluster, node)
