-- The part of the scope's window that the evidence of each of its clusters covers.
-- grain: cluster
select
    cluster,
    greatest(first_ms, coalesce(chosen_from_ms(), first_ms)) as from_ms,
    least(as_of_ms, coalesce(chosen_to_ms(), as_of_ms)) as to_ms
from intermediate.int_clusters
where in_cluster(cluster)
