-- Events of nodes with the cluster of their node.
-- grain: source, node, at_ms, kind, pid, message
-- at_ms: epoch ms
select
    events.* exclude (cluster, node, ts, load_sequence),
    coalesce(events.cluster, node_clusters.cluster, 'default') as cluster,
    coalesce(node_clusters.known_as, events.node) as node,
    to_ms(events.ts) as at_ms
from raw.node_events as events
left join staging.stg_node_clusters as node_clusters on events.node = node_clusters.node
