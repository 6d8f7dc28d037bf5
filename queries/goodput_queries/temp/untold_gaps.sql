-- Held time of which no attempt tells anything: there telemetry decides.
-- grain: unit, start_ms
with ends as (
    select unit, hold, start_ms, end_ms from temp.held_pieces
    union all
    -- nothing is told from the beginning of a hold, and until its end
    select unit, hold, start_ms, start_ms from temp.holds
    union all
    select unit, hold, end_ms, end_ms from temp.holds
)

select unit, hold, end_ms as start_ms, next_ms as end_ms
from (
    select
        unit, hold, end_ms,
        lead(start_ms) over (partition by unit, hold order by start_ms, end_ms) as next_ms
    from ends
)
where next_ms > end_ms
