-- Short names of hosts that stand for a node, for sources whose names no other source has: with or without a domain,
-- in upper or lower case.
-- grain: host, node
-- node: its canonical name; cluster: null where it is not known
-- is_only, is_only_of_cluster: no other node has this short name
select
    split_part(lower(node), '.', 1) as host,
    coalesce(known_as, node) as node,
    min(cluster) as cluster,
    count(*) over (partition by split_part(lower(node), '.', 1)) = 1 as is_only,
    count(*) over (partition by split_part(lower(node), '.', 1), min(cluster)) = 1 as is_only_of_cluster
from staging.stg_node_clusters
group by 1, 2
