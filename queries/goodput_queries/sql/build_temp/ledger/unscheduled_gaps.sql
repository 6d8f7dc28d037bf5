-- Intervals in which a unit of this pass has no known owner, and no scheduler or label source covers its node.
-- materialised: inline, since one stage reads it
-- grain: unit, start_ms
with units as (
    select units.unit, units.start_ms, least(units.end_ms, nodes.until_ms) as end_ms
    from temp.units as units
    inner join (select distinct cluster, node, until_ms from staging.stg_unscheduled) as nodes using (cluster, node)
    where nodes.until_ms is null or nodes.until_ms > units.start_ms
),

ends as (
    select holds.unit, holds.start_ms, holds.end_ms from temp.holds as holds semi join units using (unit)
    union all
    select unit, start_ms, start_ms from units
)

select ends.unit, ends.end_ms as start_ms, least(coalesce(ends.next_ms, units.end_ms), units.end_ms) as end_ms
from (
    select unit, end_ms, lead(start_ms) over (partition by unit order by start_ms, end_ms) as next_ms
    from ends
) as ends
inner join units using (unit)
where ends.end_ms < least(coalesce(ends.next_ms, units.end_ms), units.end_ms)
