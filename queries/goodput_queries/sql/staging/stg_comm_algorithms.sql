-- Algorithm and protocol of the operations of one size in a process, where NCCL's log has one alone: its communicators
-- may choose differently, and the lines do not name them.
-- grain: cluster, node, pid, operation, message_bytes
select
    coalesce(algorithms.cluster, node_clusters.cluster, 'default') as cluster,
    coalesce(node_clusters.known_as, algorithms.node) as node,
    algorithms.pid,
    algorithms.operation,
    algorithms.message_bytes,
    min(algorithms.algorithm) as algorithm,
    min(algorithms.protocol) as protocol
from raw.comm_algorithms as algorithms
left join staging.stg_node_clusters as node_clusters on algorithms.node = node_clusters.node
group by all
having count(distinct (algorithms.algorithm, algorithms.protocol)) = 1
