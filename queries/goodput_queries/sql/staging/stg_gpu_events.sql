-- Events of GPUs (Xid and others) with the cluster of their node.
-- grain: source, node, pci_bus_id, gpu_uuid, at_ms, kind, code, message
-- at_ms: epoch ms
select
    events.source,
    coalesce(events.cluster, node_clusters.cluster, 'default') as cluster,
    coalesce(node_clusters.known_as, events.node) as node,
    events.gpu_uuid,
    events.pci_bus_id,
    to_ms(events.ts) as at_ms,
    events.ts_precision,
    events.kind,
    events.code,
    events.message
from raw.gpu_events as events
left join staging.stg_node_clusters as node_clusters on events.node = node_clusters.node
