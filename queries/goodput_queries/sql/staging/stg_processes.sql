-- Processes that had a context on a GPU, with their cluster and times in epoch ms.
-- grain: source, cluster, node, pid, start_ms
-- gone_ms: the first look that did not find it; null: it lived when it was seen last
select
    processes.source,
    coalesce(processes.cluster, node_clusters.cluster, 'default') as cluster,
    coalesce(node_clusters.known_as, processes.node) as node,
    processes.pid,
    to_ms(processes.start_at) as start_ms,
    processes.user_name,
    processes.process_name,
    to_ms(processes.gone_at) as gone_ms
from raw.processes as processes
left join staging.stg_node_clusters as node_clusters on processes.node = node_clusters.node
