-- First and last time in the evidence of each cluster: the ledger of running job runs ends at the last.
-- grain: cluster
-- first_ms: the earliest time in the evidence of any source
-- as_of_ms: the latest time in the evidence of any source
-- materialised: full, since nearly every stage asks it
with moments as (
    select inventory.cluster, min(first_ms) as first_ms, max(last_ms) as last_ms
    from state.reading_series
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
    -- the reported start of a span is no evidence of its cluster: a wrong duration must not invent years of it
    select coalesce(hosts.cluster, node_clusters.cluster, 'default'), min(hosts.first_ms), max(hosts.last_ms)
    from state.event_hosts as hosts
    left join staging.stg_node_clusters as node_clusters on hosts.host = node_clusters.node
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
