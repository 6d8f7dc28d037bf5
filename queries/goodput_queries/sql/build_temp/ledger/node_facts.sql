-- Node states and demand in this pass.
-- grain: cluster, node, start_ms
-- fact: number of the combination of facts, from 1: there are few
select
    cast(dense_rank() over (
        order by
            coalesce(state, ''), is_watched, is_reserved, is_planned, is_stranded, has_demand,
            coalesce(demanded_profiles, ''), is_demand_known
    ) as integer) as fact,
    * exclude (hour_ms)
from intermediate.int_node_intervals
where
    start_ms < build_to_ms() + threshold('idle_min_ms')
    and end_ms > build_from_ms() - threshold('idle_min_ms')
