-- Nodes that offer more GPUs to Kubernetes than telemetry lists, and say nothing of shares: each GPU in equal shares.
-- grain: cluster, node
-- devices: GPUs that a source names; slots: GPUs that the node offers
-- replicas: shares of a GPU; null: the slots are no multiple of the devices, so that they count as GPUs
with counted as (
    select
        cluster,
        node,
        count(distinct gpu_uuid) filter (where not is_slot) as devices,
        count(distinct gpu_uuid) filter (where is_slot) as slots
    from staging.stg_gpus
    where not is_slot or source = 'kubernetes'
    group by cluster, node
)

select
    *,
    case when slots % devices = 0 then slots // devices end as replicas
from counted
where
    devices > 0
    and slots > devices
    and node not in (
        select coalesce(gpus.node, regexp_extract(parts.gpu_uuid, '^(?:.*/)?(.*)#[0-9]+$', 1))
        from raw.gpu_instances as parts
        left join raw.gpus as gpus using (gpu_uuid)
    )
