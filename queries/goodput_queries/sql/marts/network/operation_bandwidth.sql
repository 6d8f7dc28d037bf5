-- Collectives of the scope's window with their bus bandwidth: of the rank that waited least, since the time of the others
-- has their waiting for late ranks in it.
-- grain: cluster, comm_id, operation, sequence_number
-- size_bytes: as nccl-tests counts it: of AllGather and ReduceScatter over all ranks; size_from_bytes: the power of two
--  at or below it
-- nodes: number of nodes of the communicator
-- busbw_bytes_per_s: bytes/s; exec_time_s: of the rank that waited least
-- algorithm, protocol: as a process of it logged them; null: none did, or they cannot be told from those of another communicator
select
    cluster,
    comm_id,
    operation,
    sequence_number,
    any_value(ranks) as ranks,
    any_value(nodes) as nodes,
    max(tested_size(operation, message_bytes, ranks)) as size_bytes,
    size_bucket(max(tested_size(operation, message_bytes, ranks))) as size_from_bytes,
    max(busbw_bytes_per_s) as busbw_bytes_per_s,
    min(exec_time_s) as exec_time_s,
    any_value(algorithms.algorithm) as algorithm,
    any_value(algorithms.protocol) as protocol
from staging.stg_collectives
left join staging.stg_comm_algorithms as algorithms using (cluster, node, pid, operation, message_bytes)
where
    not is_p2p
    and ranks > 1
    and message_bytes > 0
    and busbw_bytes_per_s > 0
    and isfinite(busbw_bytes_per_s)
    and dumped_at >= from_ms(scope_from_ms())
    and dumped_at < scope_to_at()
    and in_cluster(cluster)
group by cluster, comm_id, operation, sequence_number
