-- Capacity: GPU time in the inventory within the scope, computed from the inventory and not from the ledger, so that
-- the two can be compared. Filters on owners (team, user, run, partition) do not apply to it.
-- grain: cluster
-- capacity_ms: milliseconds of a whole GPU
with units as (
    select
        units.cluster,
        units.share_lo,
        units.share_hi,
        units.share_of,
        scope_start(units.start_ms) as start_ms,
        scope_end(least(coalesce(units.end_ms, clusters.as_of_ms), clusters.as_of_ms)) as end_ms
    from intermediate.int_gpu_units as units
    inner join intermediate.int_clusters as clusters using (cluster)
    where
        in_cluster(units.cluster)
        and in_node(units.node)
        and in_gpu(units.gpu_uuid)
        and in_gpu_model(units.gpu_model)
)

select cluster, sum(share_ms(start_ms, end_ms, share_lo, share_hi, share_of))::bigint as capacity_ms
from units
where end_ms > start_ms
group by cluster
