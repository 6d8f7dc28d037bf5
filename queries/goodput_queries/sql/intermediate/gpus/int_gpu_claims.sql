-- Places that evidence gives a GPU: stays of inventories, and nodes on which job runs held a GPU that no inventory has there.
-- They can contradict each other: int_gpu_units counts a GPU in one place at a time.
-- grain: none (two clusters may report one GPU at one time)
-- start_ms: null: no evidence of its cluster has a time
-- end_ms: null: still there
-- method: inventory, or holds
-- is_dated: the dates come from an inventory file
with inventory as (select * from intermediate.int_gpu_inventory),

first_holds as (select * from intermediate.int_first_holds)

select
    inventory.cluster,
    inventory.node,
    inventory.gpu_uuid,
    inventory.gpu_model,
    inventory.slurm_index,
    inventory.gpu_index,
    case
        when inventory.is_dated then coalesce(inventory.start_ms, clusters.first_ms)
        else least(coalesce(inventory.start_ms, clusters.first_ms), first_holds.start_ms)
    end as start_ms,
    inventory.end_ms,
    inventory.is_dated,
    'inventory' as method
from inventory
inner join intermediate.int_cluster_starts as clusters using (cluster)
left join first_holds using (cluster, gpu_uuid, node)
union all
select
    first_holds.cluster,
    first_holds.node,
    first_holds.gpu_uuid,
    first_holds.gpu_model,
    first_holds.slurm_index,
    null,
    first_holds.start_ms,
    null,
    false,
    'holds'
from first_holds
anti join inventory using (cluster, gpu_uuid, node)
