-- Head-room of racks to the slowdown temperature of their GPUs, by the ten-minute roll-up: see marts.power_headroom.
-- grain: cluster, rack
-- evaluated: first
-- rack: null: the inventory does not know where the nodes stand
-- nodes, gpus: in the inventory; known_nodes: nodes with a temperature and a slowdown temperature
-- gpu_temperature_c: of the hottest GPU; hottest_node: of the node with the least margin, of several
--  the first by name
-- slowdown_margin_c: least margin of a GPU of the rack; median_margin_c: median over nodes of their least margin
select
    headroom.cluster,
    racks.rack,
    count(distinct headroom.node) as nodes,
    sum(headroom.gpus)::bigint as gpus,
    count(distinct headroom.node) filter (where headroom.slowdown_margin_c is not null) as known_nodes,
    max(headroom.gpu_temperature_c) as gpu_temperature_c,
    coalesce(
        arg_min(headroom.node, (headroom.slowdown_margin_c, headroom.node))
            filter (where headroom.slowdown_margin_c is not null),
        arg_min(headroom.node, (-headroom.gpu_temperature_c, headroom.node))
            filter (where headroom.gpu_temperature_c is not null)
    ) as hottest_node,
    min(headroom.slowdown_margin_c) as slowdown_margin_c,
    median(headroom.slowdown_margin_c) as median_margin_c
from marts.power_headroom as headroom
left join staging.stg_node_racks as racks using (cluster, node)
group by headroom.cluster, racks.rack
