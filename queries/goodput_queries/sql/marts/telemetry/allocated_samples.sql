-- Readings of GPUs in the window while a job run of the scope's owners had them, as staging.stg_gpu_samples has them.
-- grain: source, gpu_uuid, gpu_instance, ts_ms
-- access: team
select samples.*
from staging.stg_gpu_samples as samples
semi join intermediate.int_holds_in_scope as held
    on samples.gpu_uuid = held.gpu_uuid
    and samples.gpu_instance = held.gpu_instance
    and samples.ts_ms >= held.start_ms
    and samples.ts_ms < held.end_ms
where
    samples.ts >= from_ms(scope_from_ms())
    and samples.ts < scope_to_at()
