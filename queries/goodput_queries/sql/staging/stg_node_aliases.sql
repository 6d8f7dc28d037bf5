-- Short names of hosts that stand for one node, for sources whose names no other source has: with or without a domain.
-- grain: host
-- node: its canonical name; cluster: null where it is not known
select
    split_part(node, '.', 1) as host,
    min(coalesce(known_as, node)) as node,
    min(cluster) as cluster
from staging.stg_node_clusters
group by split_part(node, '.', 1)
having count(distinct coalesce(known_as, node)) = 1
