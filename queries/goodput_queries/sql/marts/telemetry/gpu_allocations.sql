-- Time in which the scope's GPUs were allocated to job runs, cut at the window.
-- grain: gpu_uuid, gpu_instance, start_at
-- access: team
-- start_at, end_at: cut at the window and at the end of the evidence
-- run_key, run_id, job_name, team, user_name: of the run; attempt: the last attempt of the job run
-- method: how the GPU is known
with attempts as (
    select job_run_key, max(attempt) as attempt from intermediate.int_attempts group by job_run_key
)

select
    holds.* exclude (slurm_index, start_ms, end_ms),
    owners.run_key,
    owners.run_id,
    owners.job_name,
    owners.team,
    owners.user_name,
    attempts.attempt,
    from_ms(scope_start(holds.start_ms)) as start_at,
    from_ms(scope_end(least(coalesce(holds.end_ms, clusters.as_of_ms), clusters.as_of_ms))) as end_at
from intermediate.int_holds as holds
inner join intermediate.int_clusters as clusters using (cluster)
left join intermediate.int_job_run_owners as owners using (job_run_key)
left join attempts using (job_run_key)
where
    in_window(holds.start_ms, holds.end_ms)
    and in_cluster(holds.cluster)
    and in_node(holds.node)
    and in_gpu(holds.gpu_uuid)
    and of_owner(owners.team, owners.user_name, owners.run_key, owners.partition)
