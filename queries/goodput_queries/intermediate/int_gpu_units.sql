-- The parts of GPUs that the ledger counts: a whole GPU, a MIG instance, or the rest of a MIG GPU; each
-- with the share of its GPU and the time it is in the inventory. The shares of a GPU add up to 1.
-- grain: gpu_uuid, gpu_instance, start_ms
-- gpu_instance: '' for a whole GPU, 'rest' for what no instance covers
-- share_lo: lower end of the share, in parts of share_of
-- share_hi: upper end of the share
-- end_ms: null: still there
-- method: inventory, or holds (no inventory: the GPUs that job runs held at one time)
-- materialised: full, since every later stage joins it
-- dirties: start_ms, end_ms
with inventory as (select * from intermediate.int_gpu_inventory),

clusters as (select * from intermediate.int_clusters),

first_holds as (
    select cluster, gpu_uuid, node, min(start_ms) as start_ms, max(slurm_index) as slurm_index
    from intermediate.int_holds
    group by cluster, gpu_uuid, node
),

gpus as (
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
        'inventory' as method
    from inventory
    inner join clusters using (cluster)
    left join first_holds using (cluster, gpu_uuid, node)
    union all
    select
        first_holds.cluster,
        first_holds.node,
        first_holds.gpu_uuid,
        null,
        first_holds.slurm_index,
        null,
        first_holds.start_ms,
        null,
        'holds'
    from first_holds
    anti join inventory using (cluster, gpu_uuid, node)
),

instances as (
    select
        gpu_uuid,
        gpu_instance,
        profile,
        share_lo,
        share_hi
    from staging.stg_gpu_instances
    union all
    select gpu_uuid, 'rest', null, max(share_hi), 7
    from staging.stg_gpu_instances
    group by gpu_uuid
    having max(share_hi) < 7
)

select
    gpus.cluster,
    gpus.node,
    gpus.gpu_uuid,
    coalesce(instances.gpu_instance, '') as gpu_instance,
    instances.profile as mig_profile,
    gpus.gpu_model,
    gpus.gpu_index,
    gpus.slurm_index,
    coalesce(instances.share_lo, 0)::bigint as share_lo,
    coalesce(instances.share_hi, 1)::bigint as share_hi,
    (case when instances.gpu_uuid is null then 1 else 7 end)::bigint as share_of,
    gpus.start_ms,
    gpus.end_ms,
    gpus.method
from gpus
left join instances using (gpu_uuid)
where gpus.start_ms is not null and (gpus.end_ms is null or gpus.end_ms > gpus.start_ms)
