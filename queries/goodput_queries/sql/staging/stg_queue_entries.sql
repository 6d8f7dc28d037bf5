-- Waits of jobs in queues of Kueue and Volcano, with the first job run of the job's pods, which continues the wait.
-- grain: cluster, uid, since_ms
-- until_ms: admitted or gone; null: it waits. Of one that was evicted a later listing says when it was admitted again; one
--  that listings of an API server leave out for `vanished_min_ms` has gone
-- pods_submit_ms: of the job run whose pods were made for it; null: none is known
-- cluster_queue: of its LocalQueue, where the entry does not say
with waits as (
    select
        * replace (
            coalesce(
                until_at,
                min(until_at) over (
                    partition by source, cluster, uid order by since_at rows between 1 following and unbounded following
                ),
                case
                    when
                        source = 'kubernetes-api'
                        and to_ms(max(observed_at) over (partition by source, cluster)) - to_ms(observed_at)
                        > threshold('vanished_min_ms')
                        then observed_at
                end
            ) as until_at,
            max(coalesce(load_sequence, 0)) over (partition by source, cluster, uid) as load_sequence
        ),
        lead(since_at) over (partition by source, cluster, job_id_raw order by since_at) as next_since_at
    from raw.queue_entries
),

pods as (
    select waits.cluster, waits.uid, waits.since_at, min(runs.submit_at) as submit_at, max(runs.load_sequence) as load_sequence
    from waits
    inner join raw.job_runs as runs
        on waits.cluster = runs.cluster
        and waits.job_id_raw = runs.job_id_raw
        -- pods that wait for their queue are made a moment before they are in it
        and runs.submit_at >= waits.since_at - interval 1 minute
        and coalesce(runs.submit_at < waits.next_since_at, true)
    group by all
),

local_queues as (
    select cluster, queue, any_value(parent) as cluster_queue
    from staging.stg_queue_quotas
    where kind = 'LocalQueue'
    group by all
)

select
    waits.* exclude (source, since_at, until_at, kind, cluster_queue, observed_at, load_sequence, next_since_at),
    to_ms(waits.since_at) as since_ms,
    to_ms(waits.until_at) as until_ms,
    coalesce(waits.cluster_queue, local_queues.cluster_queue) as cluster_queue,
    to_ms(waits.observed_at) as observed_ms,
    to_ms(pods.submit_at) as pods_submit_ms,
    greatest(waits.load_sequence, pods.load_sequence) as load_sequence
from waits
left join pods using (cluster, uid, since_at)
left join local_queues
    on waits.cluster = local_queues.cluster and waits.account || '/' || waits.queue = local_queues.queue
where waits.until_at is distinct from waits.since_at
