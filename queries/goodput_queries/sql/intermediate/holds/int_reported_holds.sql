-- Input of placement: GPUs that sources report for job runs (staging.stg_holds), parts of GPUs, and GPUs labelled with the job's id.
-- grain: none
-- skip_if_empty: raw.holds, raw.nodes where gpus_used > 0, raw.gpu_owners, staging.stg_inferred_holds, intermediate.int_parts_of_gpus
with names as (
    select
        cluster,
        unnest(list_distinct([job_id, job_id_raw])) as owner,
        job_id_raw,
        job_run_key,
        submit_ms,
        start_ms,
        end_ms,
        nodes
    from intermediate.int_job_runs
    where start_ms is not null and not is_inferred
)

select *, null as job_run_key from staging.stg_holds
union all
select
    cluster, job_id_raw, submit_ms, node, null, gpu_uuid, gpu_instance, null, null, 'assumed', null, null,
    -1,  -- the build knows which slots differ
    job_run_key
from intermediate.int_parts_of_gpus
where gpu_uuid is not null
union all
select
    names.cluster,
    names.job_id_raw,
    names.submit_ms,
    owners.node,
    null,
    owners.gpu_uuid,
    owners.gpu_instance,
    null,
    null,
    'hpc_job',
    null,
    null,
    max(owners.load_sequence),
    names.job_run_key
from staging.stg_gpu_owners as owners
inner join names using (cluster, owner)
where
    owners.kind = 'hpc_job'
    and owners.first_ms < coalesce(names.end_ms, forever_ms())
    and owners.last_ms >= names.start_ms
    and list_contains(names.nodes, owners.node)
group by all
