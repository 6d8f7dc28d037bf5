-- Time of each GPU in a node, cut at the scope's window and at the end of its cluster's evidence.
-- grain: gpu_uuid, node, start_ms
with clusters as (
    select cluster, first_ms, as_of_ms from intermediate.int_clusters
)

select *
from (
    select
        gpus.cluster,
        gpus.node,
        gpus.gpu_uuid,
        gpus.gpu_model,
        scope_start(coalesce(gpus.start_ms, clusters.first_ms)) as start_ms,
        scope_end(least(coalesce(gpus.end_ms, clusters.as_of_ms), clusters.as_of_ms)) as end_ms
    from intermediate.int_gpu_inventory as gpus
    inner join clusters using (cluster)
    where in_place(gpus.cluster, gpus.node, gpus.gpu_uuid, gpus.gpu_model)
)
where end_ms > start_ms
