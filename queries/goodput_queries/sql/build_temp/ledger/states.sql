-- The state of every layer of a unit between one change and the next; 0: the layer has no evidence.
-- grain: unit, start_ms
-- materialised: inline, since intervals_classified alone asks it
-- activity: of temp.held_activity, of unallocated time of temp.inferred_activity; 0: no telemetry
-- doubts: how many GPUs of the node that nobody has are active while a job run has this one by assumption
with moments as (
    select unit, at_ms, sum(change) as change
    from temp.changes
    group by unit, at_ms
),

-- at its end all that was known of a unit has gone again, so that one sum can go on from unit to unit
carried as (
    select
        unit,
        at_ms as start_ms,
        lead(unit) over in_order as next_unit,
        lead(at_ms) over in_order as end_ms,
        sum(change) over (in_order rows unbounded preceding) as layers
    from moments
    window in_order as (order by unit, at_ms)
)

select
    unit,
    start_ms,
    end_ms,
    hold_in(layers) as hold,
    piece_in(layers) as piece,
    activity_in(layers) as activity,
    emptiness_in(layers) as emptiness,
    doubts_in(layers) as doubts,
    fact_in(layers) as fact,
    serving_in(layers) as serving
from carried
where next_unit = unit and end_ms > build_from_ms() and start_ms < build_to_ms()
