-- Counters and gauges of serving engines with their cluster, the canonical name of the node and epoch ms.
-- ts: to filter by: the zones of the table are known for it, not for what is computed from it
-- grain: source, cluster, endpoint, engine, model, metric, ts_ms
-- node: null: the series does not say
-- engine, model, role: '': the series does not say
-- value: counters as the engine counts them, from 0 again after a restart
select
    samples.source,
    coalesce(samples.cluster, node_clusters.cluster, aliases.cluster, 'default') as cluster,
    samples.endpoint,
    coalesce(node_clusters.known_as, node_clusters.node, aliases.node, samples.node) as node,
    samples.* exclude (source, cluster, endpoint, node, load_sequence),
    to_ms(samples.ts) as ts_ms
from raw.serving_samples as samples
left join staging.stg_node_clusters as node_clusters on samples.node = node_clusters.node
left join staging.stg_node_aliases as aliases on is_alias(samples.node, samples.cluster, node_clusters.cluster, aliases)
