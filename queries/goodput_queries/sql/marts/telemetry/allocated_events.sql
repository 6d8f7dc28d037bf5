-- Events of GPUs in the window while a job run of the scope's owners had them: rows of marts.gpu_events.
-- grain: none (two sources may report one event)
-- access: team
select events.*
from marts.gpu_events as events
semi join intermediate.int_holds_in_scope as held
    on events.gpu_uuid = held.gpu_uuid
    and epoch_ms(events.event_at) >= held.start_ms
    and epoch_ms(events.event_at) < held.end_ms
