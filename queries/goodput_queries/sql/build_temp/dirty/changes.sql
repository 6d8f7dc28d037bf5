-- Every moment at which anything known of a unit changes: a layer's number comes at the start of an interval
-- and goes at its end. The intervals of one layer never overlap, so that the sum of its changes so far is the
-- number of the interval that holds: this replaces range joins between millions of intervals.
-- A layer is set only where it decides: node facts while the unit is not allocated, telemetry where no attempt has events.
-- materialised: inline, since one stage reads it
-- grain: none (changes of several layers at one moment)
-- change: of all layers in one number (macros/layers.sql)
with activity as (
    select
        gaps.unit,
        seen.activity,
        greatest(seen.start_ms, gaps.start_ms) as start_ms,
        least(seen.end_ms, gaps.end_ms) as end_ms
    from temp.held_activity as seen
    inner join temp.uncovered_holds as gaps
        on seen.unit = gaps.unit
        and seen.hold = gaps.hold
        and seen.start_ms < gaps.end_ms
        and seen.end_ms > gaps.start_ms
),

processes as (
    select
        gpu_uuid,
        processes = 0 as is_empty,
        ts_ms as end_ms,
        lag(ts_ms) over (partition by gpu_uuid order by ts) as start_ms
    from staging.stg_gpu_processes
    where
        ts >= from_ms(build_from_ms() - threshold('idle_min_ms')::bigint - 60000)
        and ts <= from_ms(build_to_ms() + threshold('idle_min_ms')::bigint + 60000)
),

empties as (
    -- a reading of no process covers back to the one before it, at most a minute
    select
        units.unit,
        1 as emptiness,
        greatest(processes.start_ms, processes.end_ms - 60000, units.start_ms) as start_ms,
        least(processes.end_ms, units.end_ms) as end_ms
    from processes
    inner join temp.units as units using (gpu_uuid)
    where processes.is_empty and processes.start_ms is not null
),

node_facts as (
    select
        units.unit,
        facts.fact,
        greatest(facts.start_ms, gaps.start_ms) as start_ms,
        least(facts.end_ms, gaps.end_ms) as end_ms
    from temp.free_gaps as gaps
    inner join temp.units as units using (unit)
    inner join temp.node_facts as facts
        on units.cluster = facts.cluster
        and units.node = facts.node
        and facts.start_ms < gaps.end_ms
        and facts.end_ms > gaps.start_ms
),

assumed as (
    select units.cluster, units.node, holds.unit, holds.start_ms, holds.end_ms
    from temp.holds as holds
    inner join temp.units as units using (unit)
    where holds.is_assumed
),

-- a job run that has its GPUs by assumption may be what makes others of its node active
doubts as (
    select
        assumed.unit,
        greatest(activity.start_ms, gaps.start_ms, assumed.start_ms) as start_ms,
        least(activity.end_ms, gaps.end_ms, assumed.end_ms) as end_ms
    from temp.free_gaps as gaps
    inner join temp.units as units using (unit)
    inner join assumed
        on units.cluster = assumed.cluster
        and units.node = assumed.node
        and gaps.start_ms < assumed.end_ms
        and gaps.end_ms > assumed.start_ms
    inner join intermediate.int_gpu_activity as activity
        on units.gpu_uuid = activity.gpu_uuid
        and units.gpu_instance = activity.gpu_instance
        and activity.start_ms < least(gaps.end_ms, assumed.end_ms)
        and activity.end_ms > greatest(gaps.start_ms, assumed.start_ms)
    where
        activity.is_active
        and activity.hour_ms > build_from_ms() - threshold('idle_min_ms')::bigint - one_hour_ms()
        and activity.hour_ms < build_to_ms() + threshold('idle_min_ms')::bigint
),

intervals as (
    select unit, start_ms, end_ms, layer_hold(hold) as change from temp.holds
    union all
    select unit, start_ms, end_ms, layer_piece(piece) from temp.held_pieces
    union all
    select unit, start_ms, end_ms, layer_activity(activity) from activity
    union all
    select unit, start_ms, end_ms, layer_activity(activity) from temp.inferred_activity
    union all
    select unit, start_ms, end_ms, layer_emptiness(emptiness) from empties
    union all
    select unit, start_ms, end_ms, layer_doubt() from doubts
    union all
    select unit, start_ms, end_ms, layer_fact(fact) from node_facts
    union all
    select unit, start_ms, end_ms, layer_serving(number) from temp.serving
)

select unit, unnest([start_ms, end_ms]) as at_ms, unnest([change, -change]) as change
from intervals
where end_ms > start_ms
union all
select unit, unnest([start_ms, end_ms]), 0
from temp.units
union all
-- the ledger is cut at hours
select unit, unnest(range(start_ms // one_hour_ms() + 1, (end_ms - 1) // one_hour_ms() + 1)) * one_hour_ms(), 0
from temp.units
