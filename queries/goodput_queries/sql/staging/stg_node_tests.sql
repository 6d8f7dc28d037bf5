-- Results of tests of nodes with the cluster of their node.
-- grain: source, cluster, node, at_ms, test, gpu_indices
-- at_ms: epoch ms
-- gpu_indices: numbers of its GPUs, with commas; empty: the node
-- result: pass, warn, fail, skip
select
    tests.* exclude (cluster, node, ts, load_sequence),
    coalesce(tests.cluster, node_clusters.cluster, 'default') as cluster,
    coalesce(node_clusters.known_as, tests.node) as node,
    to_ms(tests.ts) as at_ms
from raw.node_tests as tests
left join staging.stg_node_clusters as node_clusters on tests.node = node_clusters.node
