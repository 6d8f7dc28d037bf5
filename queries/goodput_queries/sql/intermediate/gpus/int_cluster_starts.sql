-- The earliest time in the evidence of each cluster.
-- grain: cluster
-- materialised: full, since it stays while the end of the evidence moves
-- change_tracking: all
select cluster, first_ms
from intermediate.int_clusters
