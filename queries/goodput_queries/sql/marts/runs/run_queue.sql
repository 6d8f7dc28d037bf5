-- Time in which job runs of a run waited for GPUs, cut at the window.
-- grain: run_key, job_run_key
-- access: team
-- start_at: when the job run could have started (Slurm: eligible), else when it was submitted
-- end_at: when it started; the end of the evidence while it waits
-- wait_s: length of the whole wait
select
    owners.run_key,
    job_runs.job_run_key,
    job_runs.cluster,
    job_runs.job_id,
    from_ms(scope_start(coalesce(job_runs.eligible_ms, job_runs.submit_ms))) as start_at,
    from_ms(scope_end(coalesce(job_runs.start_ms, clusters.as_of_ms))) as end_at,
    (coalesce(job_runs.start_ms, clusters.as_of_ms) - coalesce(job_runs.eligible_ms, job_runs.submit_ms)) / 1000.0 as wait_s
from intermediate.int_job_runs as job_runs
inner join intermediate.int_clusters as clusters using (cluster)
inner join intermediate.int_job_run_owners as owners using (job_run_key)
where
    not job_runs.is_inferred
    and of_teams(owners.team)
    and in_cluster(job_runs.cluster)
    and coalesce(job_runs.eligible_ms, job_runs.submit_ms) < coalesce(job_runs.start_ms, clusters.as_of_ms)
    and in_window(coalesce(job_runs.eligible_ms, job_runs.submit_ms), coalesce(job_runs.start_ms, clusters.as_of_ms))
