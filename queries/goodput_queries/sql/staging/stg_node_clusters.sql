-- Clusters of node names, for sources without a cluster (the only cluster with the name), and the canonical name of the
-- same machine.
-- grain: node
-- cluster: null where two clusters have a node of this name, or no source reports one
-- is_scheduled: a scheduler names it
-- known_as: its name with or without its domain, in upper or lower case: the one that a scheduler writes, else the short
--  one, else that in lower case; else, where an inventory file has all GPUs that are seen there on one other node, that
--  node (an exporter may call itself after its container); null: its own
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
        lower(node) as folded,
        split_part(folded, '.', 1) as host,
        case when count(distinct cluster) = 1 then min(cluster) end as cluster,
        list(distinct cluster) filter (where cluster is not null) as clusters,
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
        -- a short name in another cluster is another machine
        and coalesce(list_has_any(names.clusters, others.clusters), true)
        and (
            starts_with(names.folded, others.folded || '.')
            or (others.is_scheduled and starts_with(others.folded, names.folded || '.'))
            or (names.folded = others.folded and (others.is_scheduled or names.node < others.node))
        )
    qualify others.is_scheduled = bool_or(others.is_scheduled) over (partition by names.node)
),

by_name as (
    select node, max(other) as known_as
    from same
    group by node
    having count(distinct lower(other)) = 1
),

by_gpus as (
    select seen.node, min(listed.node) as known_as
    from raw.gpus as seen
    inner join nodes on seen.node = nodes.node and not nodes.is_scheduled
    left join raw.gpus as listed
        on seen.gpu_uuid = listed.gpu_uuid
        and listed.source = 'inventory'
        and is_dated_by(to_ms(listed.valid_from_at), to_ms(listed.valid_to_at), to_ms(seen.valid_from_at))
    group by seen.node
    having
        count(*) = count(listed.node)
        and count(distinct listed.node) = 1
        and bool_and(seen.source <> 'inventory')
),

known as (
    select node, coalesce(by_name.known_as, by_gpus.known_as) as known_as
    from by_name
    full join by_gpus using (node)
    where coalesce(by_name.known_as, by_gpus.known_as) <> node
)

select
    nodes.node,
    coalesce(nodes.cluster, machine.cluster) as cluster,
    nodes.is_scheduled,
    known.known_as
from nodes
left join known using (node)
left join nodes as machine on known.known_as = machine.node
