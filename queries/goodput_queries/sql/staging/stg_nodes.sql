-- CPUs, partitions and features of nodes, by schedulers.
-- grain: none (several sources may list a node)
-- cluster: null: the source does not say which
select cluster, node, cpus, partitions, features from raw.nodes
