-- Events of GPUs in the window while a job run of the scope's owners had them: rows of marts.gpu_events.
-- grain: none (two sources may report one event)
-- access: team
with held as (
    select holds.gpu_uuid, holds.start_ms, coalesce(holds.end_ms, 9223372036854775807) as end_ms
    from intermediate.int_holds as holds
    inner join intermediate.int_job_run_owners as owners using (job_run_key)
    where
        in_window(holds.start_ms, holds.end_ms)
        and of_owner(owners.team, owners.user_name, owners.run_key, owners.partition)
)

select events.*
from marts.gpu_events as events
semi join held
    on events.gpu_uuid = held.gpu_uuid
    and epoch_ms(events.event_at) >= held.start_ms
    and epoch_ms(events.event_at) < held.end_ms
