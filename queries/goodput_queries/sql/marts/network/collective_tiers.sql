-- Where collectives go: inside nodes, or between them, by the communicator of each that was read.
-- grain: cluster, operation, is_inside_node
-- skip_if_empty: raw.collectives
-- is_inside_node: the communicator has one node; operations: number of them; moved_bytes: size times the bus factor: what each rank sends
-- moved_ratio: of the cluster's; exec_s: time of the ranks that waited least, summed
select
    cluster,
    operation,
    nodes = 1 as is_inside_node,
    count(*) as operations,
    sum(size_bytes * bus_factor(operation, ranks)) as moved_bytes,
    moved_bytes / sum(moved_bytes) over (partition by cluster) as moved_ratio,
    sum(exec_time_s) as exec_s
from marts.operation_bandwidth
where nodes is not null and bus_factor(operation, ranks) > 0
group by cluster, operation, nodes = 1
