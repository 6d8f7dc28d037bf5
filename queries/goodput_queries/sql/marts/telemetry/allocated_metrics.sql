-- Means of ten minutes of GPUs that a job run of the scope's owners had for all of these minutes, as
-- intermediate.int_gpu_metrics has them.
-- grain: source, gpu_uuid, gpu_instance, start_ms
-- access: team
with held as (
    select holds.gpu_uuid, holds.gpu_instance, holds.start_ms, coalesce(holds.end_ms, 9223372036854775807) as end_ms
    from intermediate.int_holds as holds
    inner join intermediate.int_job_run_owners as owners using (job_run_key)
    where
        in_window(holds.start_ms, holds.end_ms)
        and of_owner(owners.team, owners.user_name, owners.run_key, owners.partition)
)

select metrics.*
from intermediate.int_gpu_metrics as metrics
semi join held
    on metrics.gpu_uuid = held.gpu_uuid
    and metrics.gpu_instance = held.gpu_instance
    and metrics.start_ms >= held.start_ms
    and metrics.start_ms + 600000 <= held.end_ms
where
    metrics.hour_ms > coalesce(getvariable('scope_from_ms')::bigint, 0) - 3600000
    and metrics.hour_ms < coalesce(getvariable('scope_to_ms')::bigint, 9223372036854775807)
