-- Histogram buckets of serving engines with their cluster, the canonical name of the node and epoch ms.
-- ts: to filter by: the zones of the table are known for it, not for what is computed from it
-- grain: source, cluster, endpoint, engine, model, metric, ts_ms, le_s
-- node: null: the series does not say
-- engine, model, role: '': the series does not say
-- observations: up to le_s, since the engine started
select
    samples.* exclude (cluster, node, load_sequence),
    coalesce(samples.cluster, node_clusters.cluster, aliases.cluster, 'default') as cluster,
    coalesce(node_clusters.known_as, node_clusters.node, aliases.node, samples.node) as node,
    to_ms(samples.ts) as ts_ms
from raw.serving_histograms as samples
left join staging.stg_node_clusters as node_clusters on samples.node = node_clusters.node
left join staging.stg_node_aliases as aliases on is_alias(samples.node, samples.cluster, node_clusters.cluster, aliases)
