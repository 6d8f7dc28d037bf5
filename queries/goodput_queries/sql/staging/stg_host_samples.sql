-- Readings of hosts (CPU, memory, disks, TCP) with their cluster, the canonical name of the node and epoch ms.
-- ts: to filter by: the zones of the table are known for it, not for what is computed from it
-- grain: source, cluster, node, ts_ms
select
    samples.* exclude (cluster, node, power_w, load_sequence),
    coalesce(samples.cluster, node_clusters.cluster, aliases.cluster, 'default') as cluster,
    coalesce(node_clusters.known_as, node_clusters.node, aliases.node, samples.node) as node,
    to_ms(samples.ts) as ts_ms
from raw.node_samples as samples
left join staging.stg_node_clusters as node_clusters on samples.node = node_clusters.node
left join staging.stg_node_aliases as aliases on is_alias(samples.node, samples.cluster, node_clusters.cluster, aliases)
where samples.cpu_total_s is not null or samples.memory_total_bytes is not null
