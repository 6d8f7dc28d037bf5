-- Where nodes stand: what was loaded last.
-- grain: cluster, node
-- node: as the scheduler writes it, with or without its domain
select
    coalesce(racks.cluster, names.cluster, 'default') as cluster,
    coalesce(names.known_as, racks.node) as node,
    racks.rack,
    racks.rack_row,
    racks.feed
from raw.node_racks as racks
left join staging.stg_node_clusters as names using (node)
qualify row_number() over (
    partition by coalesce(racks.cluster, names.cluster, 'default'), coalesce(names.known_as, racks.node)
    order by racks.load_sequence desc, racks.source, racks.node
) = 1
