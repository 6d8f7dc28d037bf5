-- Intervals in which a unit of this pass was not allocated.
-- materialised: inline, since one stage reads it
-- grain: unit, start_ms
with ends as (
    select unit, start_ms, end_ms from temp.holds
    union all
    -- what nobody has begins with the unit and ends with it
    select unit, start_ms, start_ms from temp.units
    union all
    select unit, end_ms, end_ms from temp.units
)

select unit, end_ms as start_ms, next_ms as end_ms
from (
    select unit, end_ms, lead(unit) over in_order as next_unit, lead(start_ms) over in_order as next_ms
    from ends
    window in_order as (order by unit, start_ms, end_ms)
)
where next_unit = unit and next_ms > end_ms
