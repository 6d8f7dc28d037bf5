-- Settings of nodes with the cluster of their node.
-- grain: cluster, node, at_ms, run_id, setting
-- at_ms: epoch ms
-- value: null: unknown
select
    coalesce(settings.cluster, node_clusters.cluster, 'default') as cluster,
    coalesce(node_clusters.known_as, settings.node) as node,
    to_ms(settings.ts) as at_ms,
    settings.* exclude (source, cluster, node, ts, load_sequence)
from raw.node_settings as settings
left join staging.stg_node_clusters as node_clusters on settings.node = node_clusters.node
