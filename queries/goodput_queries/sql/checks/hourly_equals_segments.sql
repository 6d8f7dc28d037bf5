-- Hours in which the roll-up and the segments with their amounts differ.
-- grain: hour_ms, category
-- Hours whose readings or segments were dropped by age are left out: the roll-up is all there is of them.
with kept as (
    select case when exists (from state.kept_from) then min(hour_ms) else 0 end as from_ms from intermediate.int_ledger_segments
),

segments as (
    select hour_ms, category, sum(gpu_ms) as gpu_ms
    from marts.ledger_pieces
    where hour_ms >= (select from_ms from kept)
    group by all
),

hourly as (
    select hour_ms, category, sum(gpu_ms) as gpu_ms
    from marts.ledger_hourly_by_node
    where hour_ms >= (select from_ms from kept)
    group by all
)

select hour_ms, category, segments.gpu_ms as segments_ms, hourly.gpu_ms as hourly_ms
from segments
full join hourly using (hour_ms, category)
-- a stretch of steps of which other categories have all the time: its own has 0 ms, and no row of the roll-up
where coalesce(segments.gpu_ms, 0) <> coalesce(hourly.gpu_ms, 0)
