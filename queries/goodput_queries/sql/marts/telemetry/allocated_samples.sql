-- Readings of GPUs in the window while a job run of the scope's owners had them, as staging.stg_gpu_samples has them.
-- grain: source, gpu_uuid, gpu_instance, ts_ms
-- access: team
with held as (
    select holds.gpu_uuid, holds.gpu_instance, holds.start_ms, coalesce(holds.end_ms, 9223372036854775807) as end_ms
    from intermediate.int_holds as holds
    inner join intermediate.int_job_run_owners as owners using (job_run_key)
    where
        in_window(holds.start_ms, holds.end_ms)
        and of_owner(owners.team, owners.user_name, owners.run_key, owners.partition)
)

select samples.*
from staging.stg_gpu_samples as samples
semi join held
    on samples.gpu_uuid = held.gpu_uuid
    and samples.gpu_instance = held.gpu_instance
    and samples.ts_ms >= held.start_ms
    and samples.ts_ms < held.end_ms
where
    samples.ts >= from_ms(coalesce(getvariable('scope_from_ms')::bigint, 0))
    and samples.ts < from_ms(coalesce(getvariable('scope_to_ms')::bigint, 9223372036854775))
