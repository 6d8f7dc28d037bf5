-- Steps of jobs (srun), with the end in epoch ms.
-- grain: source, cluster, job_id_raw, step_id
select source, cluster, job_id_raw, step_id, state, to_ms(end_at) as end_ms from raw.job_steps
