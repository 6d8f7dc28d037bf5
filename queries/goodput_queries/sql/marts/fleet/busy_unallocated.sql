-- Activity of GPUs in time that no job run had, where a scheduler covers the node: somebody uses them past it, or its
-- accounting is incomplete.
-- grain: gpu_uuid, gpu_instance, hour_ms, start_ms
-- evaluated: first
-- start_ms, end_ms: of the activity, within an hour and a segment of the ledger
select
    segments.cluster,
    segments.node,
    segments.gpu_uuid,
    segments.gpu_instance,
    segments.gpu_model,
    segments.category,
    segments.hour_ms,
    greatest(activity.start_ms, segments.start_ms) as start_ms,
    least(activity.end_ms, segments.end_ms) as end_ms
from intermediate.int_gpu_activity as activity
inner join intermediate.int_ledger_segments as segments
    on activity.gpu_uuid = segments.gpu_uuid
    and activity.gpu_instance = segments.gpu_instance
    and activity.hour_ms = segments.hour_ms
    and activity.start_ms < segments.end_ms
    and activity.end_ms > segments.start_ms
where
    activity.is_active
    and segments.job_run_key is null
    -- a reading that covers more than the free time may be of a job that begins or ends in it
    and greatest(activity.first_reading_ms, segments.start_ms + activity.interval_ms)
        <= least(activity.end_ms, segments.end_ms)
    -- without a scheduler activity is somebody's
    and segments.category <> 'busy_unclassified'
