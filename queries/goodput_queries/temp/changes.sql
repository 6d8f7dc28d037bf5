-- Every moment at which anything known of a unit changes: a layer's number comes at the start of an interval
-- and goes at its end. The intervals of one layer never overlap, so that the sum of its changes so far is the
-- number of the interval that holds: this replaces range joins between millions of intervals.
-- grain: none (changes of several layers at one moment)
with held_pieces as (
    select
        holds.unit,
        pieces.piece,
        greatest(pieces.start_ms, holds.start_ms) as start_ms,
        least(pieces.end_ms, holds.end_ms) as end_ms
    from temp.holds as holds
    inner join temp.pieces as pieces
        on holds.hold = pieces.hold
        and pieces.start_ms < holds.end_ms
        and pieces.end_ms > holds.start_ms
),

activity as (
    select
        units.unit,
        case when activity.is_active then 2 else 1 end as activity,
        greatest(activity.start_ms, units.start_ms) as start_ms,
        least(activity.end_ms, units.end_ms) as end_ms
    from intermediate.int_gpu_activity as activity
    inner join temp.units as units using (gpu_uuid, gpu_instance)
    where activity.start_ms < units.end_ms and activity.end_ms > units.start_ms
),

processes as (
    select
        gpu_uuid,
        processes = 0 as is_empty,
        to_ms(ts) as end_ms,
        lag(to_ms(ts)) over (partition by gpu_uuid order by ts) as start_ms
    from raw.gpu_processes
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
        greatest(facts.start_ms, units.start_ms) as start_ms,
        least(facts.end_ms, units.end_ms) as end_ms
    from temp.node_facts as facts
    inner join temp.units as units using (cluster, node)
    where facts.start_ms < units.end_ms and facts.end_ms > units.start_ms
)

select unit, unnest([start_ms, end_ms]) as at_ms,
    0 as hold, 0 as piece, 0 as split, 0 as activity, 0 as emptiness, 0 as fact
from temp.units
union all by name
-- the ledger is cut at hours
select unit, unnest(range(start_ms // 3600000 + 1, (end_ms - 1) // 3600000 + 1)) * 3600000 as at_ms
from temp.units
union all by name
select unit, unnest([start_ms, end_ms]) as at_ms, unnest([hold, -hold]) as hold
from temp.holds
union all by name
select unit, unnest([start_ms, end_ms]) as at_ms, unnest([piece, -piece]) as piece
from held_pieces
union all by name
select unit, unnest([start_ms, end_ms]) as at_ms, unnest([split, -split]) as split
from temp.splits
where end_ms > start_ms
union all by name
select unit, unnest([start_ms, end_ms]) as at_ms, unnest([activity, -activity]) as activity
from activity
where end_ms > start_ms
union all by name
select unit, unnest([start_ms, end_ms]) as at_ms, unnest([emptiness, -emptiness]) as emptiness
from empties
where end_ms > start_ms
union all by name
select unit, unnest([start_ms, end_ms]) as at_ms, unnest([fact, -fact]) as fact
from node_facts
