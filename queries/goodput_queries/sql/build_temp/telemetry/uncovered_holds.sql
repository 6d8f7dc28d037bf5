-- Parts of holds that no attempt's events cover: telemetry alone classifies them.
-- grain: unit, start_ms
with ends as (
    select unit, hold, start_ms, end_ms from temp.held_pieces
    union all
    -- a gap also opens at the start of a hold, and closes at its end
    select unit, hold, start_ms, start_ms from temp.holds
    union all
    select unit, hold, end_ms, end_ms from temp.holds
)

select unit, hold, end_ms as start_ms, next_ms as end_ms
from (
    select
        unit, hold, end_ms,
        lead((unit, hold)) over in_order as next_of,
        lead(start_ms) over in_order as next_ms
    from ends
    window in_order as (order by unit, hold, start_ms, end_ms)
)
where next_of = (unit, hold) and next_ms > end_ms
