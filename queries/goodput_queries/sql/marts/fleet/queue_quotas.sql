-- GPU quota of queues of Kueue and Volcano, as each queue was listed last, and what waits for it at the end of the window.
-- grain: cluster, kind, queue, flavor, resource
-- kind: ClusterQueue (Kueue), Queue (Volcano); queue: its name
-- parent: cohort (Kueue), or the queue above it
-- flavor: ResourceFlavor; resource: as kube-state-metrics prints it
-- quota_gpus: nominal quota, or what the queue deserves; limit_gpus: with what it may borrow; null: no limit is set
-- reserved_gpus: of admitted jobs, and of those whose quota is reserved; used_gpus: of admitted jobs
-- borrowed_gpus: of reserved_gpus, above its quota
-- waiting_jobs, waiting_gpus: job runs of the queue that wait, and GPUs that they ask for, whatever the flavor
-- state: why it admits nothing; null: it does
-- observed_at: when it was listed
with waiting as (
    select cluster, cluster_queue as queue, gpus from marts.job_waits where not is_started
)

select
    quotas.* exclude (state, observed_at),
    count(waiting.gpus) as waiting_jobs,
    coalesce(sum(waiting.gpus), 0)::bigint as waiting_gpus,
    quotas.state,
    quotas.observed_at
from staging.stg_queue_quotas as quotas
left join waiting using (cluster, queue)
where quotas.kind <> 'LocalQueue' and in_cluster(quotas.cluster)
group by all
