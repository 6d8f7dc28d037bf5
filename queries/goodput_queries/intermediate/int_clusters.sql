-- From when to when there is evidence of a cluster: the ledger of what still runs ends there.
-- grain: cluster
-- first_ms: the earliest moment any source speaks of
-- as_of_ms: the latest moment any source speaks of
with samples_by_gpu as (
    select gpu_uuid, to_ms(min(ts)) as first_ms, to_ms(max(ts)) as last_ms
    from raw.gpu_samples
    group by gpu_uuid
),

moments as (
    select inventory.cluster, first_ms, last_ms
    from samples_by_gpu
    inner join (
        select gpu_uuid, min(cluster) as cluster from intermediate.int_gpu_inventory group by gpu_uuid
    ) as inventory using (gpu_uuid)
    union all
    select
        cluster,
        min(start_ms),
        max(greatest(submit_ms, start_ms, record_end_ms, observed_ms))
    from staging.stg_job_runs
    group by cluster
    union all
    -- where a span is told to have begun proves no cluster: a wrong duration must not invent years of it
    select cluster, min(end_ms), max(end_ms) from staging.stg_job_events group by cluster
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
