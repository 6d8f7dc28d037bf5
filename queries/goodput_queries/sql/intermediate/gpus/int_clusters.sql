-- From when to when there is evidence of a cluster: the ledger of what still runs ends there.
-- grain: cluster
-- first_ms: the earliest moment any source speaks of
-- as_of_ms: the latest moment any source speaks of
-- materialised: full, since nearly every stage asks it
with moments as (
    select inventory.cluster, min(first_ms) as first_ms, max(last_ms) as last_ms
    from raw.reading_series
    inner join (
        select gpu_uuid, min(cluster) as cluster from intermediate.int_gpu_inventory group by gpu_uuid
    ) as inventory using (gpu_uuid)
    group by inventory.cluster
    union all
    select
        cluster,
        min(start_ms),
        max(greatest(submit_ms, start_ms, record_end_ms, observed_ms))
    from intermediate.int_job_runs
    group by cluster
    union all
    -- where a span is told to have begun proves no cluster: a wrong duration must not invent years of it
    select coalesce(told.cluster, node_clusters.cluster, 'default'), min(told.first_ms), max(told.last_ms)
    from raw.event_hosts as told
    left join staging.stg_node_clusters as node_clusters on told.host = node_clusters.node
    group by all
    union all
    select cluster, min(start_ms), max(greatest(start_ms, end_ms))
    from staging.stg_node_states
    group by cluster
    union all
    select cluster, min(start_ms), null from intermediate.int_gpu_inventory group by cluster
)

select cluster, min(first_ms) as first_ms, max(last_ms) as as_of_ms
from moments
group by cluster
having max(last_ms) is not null
