-- The state of every layer of a unit between one change and the next; 0: the layer says nothing.
-- grain: unit, start_ms
-- inline: intervals_classified alone asks it
-- activity: 2 active, 1 idle, 0 no telemetry
-- stretch_ms: of held time without activity: how long it went on within the hold
with moments as (
    select
        unit,
        at_ms,
        sum(hold) as hold,
        sum(piece) as piece,
        sum(split) as split,
        sum(activity) as activity,
        sum(emptiness) as emptiness,
        sum(fact) as fact
    from temp.changes
    group by unit, at_ms
),

carried as materialized (
    select
        unit,
        at_ms as start_ms,
        lead(at_ms) over (partition by unit order by at_ms) as end_ms,
        cast(sum(hold) over so_far as integer) as hold,
        cast(sum(piece) over so_far as integer) as piece,
        cast(sum(split) over so_far as integer) as split,
        cast(sum(activity) over so_far as integer) as activity,
        cast(sum(emptiness) over so_far as integer) as emptiness,
        cast(sum(fact) over so_far as integer) as fact
    from moments
    window so_far as (
        partition by unit order by at_ms rows between unbounded preceding and current row
    )
),

idle as (
    select
        unit,
        start_ms,
        end_ms,
        (hold, start_ms) is distinct from lag((hold, end_ms)) over (partition by unit order by start_ms) as is_new
    from carried
    where hold <> 0 and activity = 1 and end_ms is not null
),

idle_numbered as (
    select
        *,
        count_if(is_new) over (
            partition by unit order by start_ms rows between unbounded preceding and current row
        ) as stretch
    from idle
),

idle_stretches as (
    select unit, start_ms, sum(end_ms - start_ms) over (partition by unit, stretch) as stretch_ms
    from idle_numbered
)

select carried.*, idle_stretches.stretch_ms
from carried
left join idle_stretches using (unit, start_ms)
where carried.end_ms > build_from_ms() and carried.start_ms < build_to_ms()
