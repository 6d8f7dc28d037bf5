-- The cluster of a node, for sources that do not say: the only cluster that names the node.
-- grain: node
-- cluster: null where two clusters have a node of this name
-- is_scheduled: a scheduler names it
-- materialised: full, since every source that names only nodes joins it
-- dirties: all
with named as (
    select cluster, unnest(nodes) as node, true as is_scheduled from raw.job_runs
    union
    select cluster, node, true from raw.nodes where cluster is not null
    union
    select cluster, node, false from raw.gpus where cluster is not null
    union
    select cluster, node, true from raw.node_states where cluster is not null and node <> '*'
    union
    select cluster, host, false from raw.event_hosts where cluster is not null and host is not null
)

select
    node,
    case when count(distinct cluster) = 1 then min(cluster) end as cluster,
    bool_or(is_scheduled) as is_scheduled
from named
group by node
