-- Capacities of power feeds: what was loaded last.
-- grain: cluster, feed
-- cluster: null: in every cluster
select cluster, feed, capacity_w, server_ratio
from raw.power_feeds
qualify row_number() over (partition by cluster, feed order by load_sequence desc, source) = 1
