-- First hold of GPUs without a start date in the inventory.
-- For most GPUs holds add nothing: they have a date, or were there from the first evidence of the cluster on.
-- grain: cluster, gpu_uuid, node
-- gpu_model: what the scheduler calls the kind of GPU (gres/gpu:h100), where all jobs that name one name the same
-- materialised: full, since it stays while new jobs hold the same GPUs
-- change_tracking: all
select
    holds.cluster,
    holds.gpu_uuid,
    holds.node,
    min(holds.start_ms) as start_ms,
    max(holds.slurm_index) as slurm_index,
    case
        -- a job that requested a MIG profile or a share does not show the model
        when count(distinct lower(job_runs.gpu_type)) = 1 and not bool_or(job_runs.gpu_type similar to '.*[1-7]g\.\d+gb.*|shared')
            then min(job_runs.gpu_type)
    end as gpu_model
from intermediate.int_holds as holds
inner join intermediate.int_job_runs as job_runs using (job_run_key)
anti join (
    select cluster, gpu_uuid, node
    from intermediate.int_gpu_inventory
    where is_dated or start_ms is null
) as dated on holds.cluster = dated.cluster and holds.gpu_uuid = dated.gpu_uuid and holds.node = dated.node
group by holds.cluster, holds.gpu_uuid, holds.node
