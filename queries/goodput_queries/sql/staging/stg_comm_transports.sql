-- Transports of communicators by process, with the cluster and the canonical name of the node.
-- grain: source, cluster, comm_id, node, pid, transport
-- comm_id: null where the log does not say which
select
    transports.source,
    coalesce(transports.cluster, node_clusters.cluster, 'default') as cluster,
    nullif(transports.comm_id, '') as comm_id,
    coalesce(node_clusters.known_as, transports.node) as node,
    transports.pid,
    transports.nodes,
    transports.transport
from raw.comm_transports as transports
left join staging.stg_node_clusters as node_clusters on transports.node = node_clusters.node
