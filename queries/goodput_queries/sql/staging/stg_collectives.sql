-- NCCL operations of single ranks with their cluster and times in epoch ms.
-- dumped_at: to filter by: the zones of the table are known for it, not for what is computed from it
-- grain: node, pid, comm_id, operation, sequence_number, dumped_ms
select
    coalesce(collectives.cluster, node_clusters.cluster, 'default') as cluster,
    coalesce(node_clusters.known_as, collectives.node) as node,
    collectives.* exclude (cluster, node, load_sequence),
    to_ms(collectives.started_at) as started_ms,
    to_ms(collectives.dumped_at) as dumped_ms
from raw.collectives as collectives
left join staging.stg_node_clusters as node_clusters on collectives.node = node_clusters.node
