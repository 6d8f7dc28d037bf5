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
    and metrics.start_ms + ten_minutes_ms() <= held.end_ms
where
    metrics.hour_ms > scope_from_ms() - one_hour_ms()
    and metrics.hour_ms < scope_to_ms()
