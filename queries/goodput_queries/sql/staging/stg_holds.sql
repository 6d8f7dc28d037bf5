-- GPUs of job runs, or their number on a node, as a source names them: schedulers, and where there is none labels
-- or what is inferred.
-- grain: none
-- start_ms, end_ms: of a part that begins or ends by itself; null: the job run's
select
    cluster,
    job_id_raw,
    to_ms(submit_at) as submit_ms,
    node,
    slurm_index,
    gpu_uuid,
    gpu_instance,
    lower(gpu_type) as gpu_type,
    gpus,
    method,
    to_ms(start_at) as start_ms,
    to_ms(end_at) as end_ms,
    load_sequence
from raw.holds
where
    gpu_instance is distinct from 'share'
    and (cluster, job_id_raw, to_ms(submit_at), coalesce(gpu_uuid, '')) not in (
        select (cluster, owner, submit_ms, unnest([gpu_uuid, ''])) from staging.stg_owner_holds where kind = 'share'
    )
union all
select
    cluster, job_id_raw, to_ms(submit_at), node, slurm_index, null, null, null, gpus, method, null, null, load_sequence
from staging.stg_used_gres
union all
select
    cluster, owner, submit_ms, node, null, gpu_uuid, gpu_instance, null, null, if(kind = 'share', 'pod', 'label'), start_ms, end_ms, load_sequence
from staging.stg_owner_holds
union all
select
    cluster,
    owner,
    submit_ms,
    node,
    slurm_index,
    gpu_uuid,
    case when gpu_uuid is not null then '' end,
    null,
    gpus,
    kind,
    start_ms,
    end_ms,
    -1  -- the build knows which differ (temp.changed_inferred_holds)
from staging.stg_inferred_holds
