-- NCCL operations of single ranks with their cluster and times in epoch ms.
-- dumped_at: to filter by: the zones of the table are known for it, not for what is computed from it
-- grain: node, pid, comm_id, operation, sequence_number, dumped_ms
select
    coalesce(collectives.cluster, node_clusters.cluster, 'default') as cluster,
    coalesce(node_clusters.known_as, collectives.node) as node,
    collectives.pid,
    collectives.comm_id,
    collectives.comm_name,
    collectives.rank,
    collectives.ranks,
    collectives.nodes,
    collectives.operation,
    collectives.is_p2p,
    collectives.sequence_number,
    collectives.message_bytes,
    collectives.exec_time_s,
    collectives.busbw_bytes_per_s,
    collectives.started_at,
    collectives.kernel_start_at,
    to_ms(collectives.started_at) as started_ms,
    collectives.dumped_at,
    to_ms(collectives.dumped_at) as dumped_ms
from raw.collectives as collectives
left join staging.stg_node_clusters as node_clusters on collectives.node = node_clusters.node
