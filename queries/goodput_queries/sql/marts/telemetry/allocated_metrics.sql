-- Means of ten minutes of GPUs that a job run of the scope's owners had for all of these minutes, as
-- intermediate.int_gpu_metrics has them.
-- grain: source, gpu_uuid, gpu_instance, start_ms
-- access: team
select metrics.*
from intermediate.int_gpu_metrics as metrics
semi join intermediate.int_holds_in_scope as held
    on metrics.gpu_uuid = held.gpu_uuid
    and metrics.gpu_instance = held.gpu_instance
    and metrics.start_ms >= held.start_ms
    and metrics.start_ms + 600000 <= held.end_ms
where
    metrics.hour_ms > coalesce(getvariable('scope_from_ms')::bigint, 0) - 3600000
    and metrics.hour_ms < coalesce(getvariable('scope_to_ms')::bigint, 9223372036854775807)
