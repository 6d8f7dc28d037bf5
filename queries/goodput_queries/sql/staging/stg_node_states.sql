-- Node states as intervals in epoch ms; node '*' means the whole cluster.
-- grain: source, cluster, node, state, start_ms
-- end_ms: null: still so
select
    node_states.source,
    coalesce(node_states.cluster, node_clusters.cluster, 'default') as cluster,
    node_states.node,
    node_states.state,
    node_states.reason,
    node_states.user_name,
    to_ms(node_states.start_at) as start_ms,
    to_ms(node_states.end_at) as end_ms
from raw.node_states as node_states
left join staging.stg_node_clusters as node_clusters on node_states.node = node_clusters.node
