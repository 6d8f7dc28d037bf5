-- When job runs of the scope's owners had GPUs or GPU instances, of those that overlap its window.
-- grain: job_run_key, gpu_uuid, gpu_instance, start_ms
-- end_ms: the end of time where it lasts
select
    holds.job_run_key,
    holds.gpu_uuid,
    holds.gpu_instance,
    holds.start_ms,
    coalesce(holds.end_ms, forever_ms()) as end_ms
from intermediate.int_holds as holds
inner join intermediate.int_job_run_owners as owners using (job_run_key)
where
    in_window(holds.start_ms, holds.end_ms)
    and of_owner(owners.team, owners.user_name, owners.run_key, owners.partition)
