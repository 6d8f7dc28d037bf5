-- Means of NCCL operations of one GPU over a window of the Inspector's Prometheus mode, with their cluster.
-- ts: to filter by: the zones of the table are known for it, not for what is computed from it
-- grain: source, cluster, node, gpu_uuid, gpu_label, ts, job_id, comm_name, ranks, operation, size_from_bytes, algorithm, protocol
select
    summaries.* exclude (cluster, node, load_sequence),
    coalesce(summaries.cluster, node_clusters.cluster, 'default') as cluster,
    coalesce(node_clusters.known_as, summaries.node) as node
from raw.collective_summaries as summaries
left join staging.stg_node_clusters as node_clusters on summaries.node = node_clusters.node
