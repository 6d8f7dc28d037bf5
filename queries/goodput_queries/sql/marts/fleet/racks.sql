-- Racks in the scope: the sums of their nodes in the window (marts.nodes).
-- grain: cluster, rack
-- evaluated: first
-- rack: null: the inventory does not have the rack of these nodes
-- rack_row, feed: row of racks, and power feed (of nodes on several feeds all of them); null: not in the inventory
-- capacity_ms, held_ms, useful_ms, wasted_ms: milliseconds of a whole GPU: capacity, allocated, useful, badput
-- power_w: sum of the nodes' mean power, of the GPUs that were read; null: of none
-- gpu_temperature_c: of the hottest GPU; thermal_s: sum of the nodes' time with a thermal slowdown reason
-- events: Xid and other events of severity above info; last_event_at: the latest of them
select
    nodes.cluster,
    nodes.rack,
    string_agg(distinct nodes.rack_row, ', ' order by nodes.rack_row) as rack_row,
    string_agg(distinct nodes.feed, ', ' order by nodes.feed) as feed,
    count(*) as nodes,
    sum(columns([
        'gpus', 'read_gpus', 'capacity_ms', 'held_ms', 'useful_ms', 'wasted_ms', 'thermal_s', 'events'
    ]))::bigint,
    sum(nodes.wasted_cost) as wasted_cost,
    sum(nodes.power_w) as power_w,
    max(nodes.gpu_temperature_c) as gpu_temperature_c,
    max(nodes.last_event_at) as last_event_at
from marts.nodes as nodes
group by nodes.cluster, nodes.rack
