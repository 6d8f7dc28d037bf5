-- Since when job runs held GPUs of which no inventory tells since when they are there.
-- Of most GPUs holds tell nothing new: they were there from the first evidence of the cluster on, or since a date.
-- grain: cluster, gpu_uuid, node
-- materialised: full, since it stays while new jobs hold the same GPUs
-- dirties: all
select cluster, gpu_uuid, node, min(start_ms) as start_ms, max(slurm_index) as slurm_index
from intermediate.int_holds
anti join (
    select cluster, gpu_uuid, node
    from intermediate.int_gpu_inventory
    where is_dated or start_ms is null
) using (cluster, gpu_uuid, node)
group by cluster, gpu_uuid, node
