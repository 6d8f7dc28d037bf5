-- Clusters of node names, for sources without a cluster (the only cluster with the name), and the canonical name of the
-- same machine.
-- grain: node
-- cluster: null where two clusters have a node of this name, or no source reports one
-- is_scheduled: a scheduler names it
-- known_as: its name with or without its domain: the one that a scheduler writes, else the short one; null: its own
-- materialised: full, since every source that names only nodes joins it
-- change_tracking: all
with named as (
    select cluster, unnest(nodes) as node, true as is_scheduled from raw.job_runs
    union
    select cluster, node, true from raw.nodes where cluster is not null
    union
    select cluster, node, false from raw.gpus
    union
    select cluster, node, true from raw.node_states where cluster is not null and node <> '*'
    union
    select cluster, host, false from state.event_hosts where host is not null
),

nodes as (
    select
        node,
        split_part(node, '.', 1) as host,
        case when count(distinct cluster) = 1 then min(cluster) end as cluster,
        bool_or(is_scheduled) as is_scheduled
    from named
    group by node
),

same as (
    select names.node, others.node as other, others.is_scheduled
    from nodes as names
    inner join nodes as others using (host)
    where
        not names.is_scheduled
        and (
            starts_with(names.node, others.node || '.')
            or (others.is_scheduled and starts_with(others.node, names.node || '.'))
        )
    qualify others.is_scheduled = bool_or(others.is_scheduled) over (partition by names.node)
),

known as (
    select node, min(other) as known_as
    from same
    group by node
    having count(*) = 1
)

select
    nodes.node,
    coalesce(nodes.cluster, machine.cluster) as cluster,
    nodes.is_scheduled,
    known.known_as
from nodes
left join known using (node)
left join nodes as machine on known.known_as = machine.node
