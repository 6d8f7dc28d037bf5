-- Why the scheduler let job runs wait: its last reason other than priority and resources for those that started, the
-- present one for those that wait.
-- grain: job_run_key
-- reason: null: it gives none
-- message: the reason in the words of the queue; queue, cluster_queue: of Kueue or Volcano, where the job was queued
-- min_pods: it starts with as many
-- evictions: how often it lost its place since; eviction_reason: of the last time
with queued as (
    select
        *,
        unnest([
            cluster || '/' || job_id_raw || '@' || since_ms // 1000 || '/queue',
            cluster || '/' || job_id_raw || '@' || pods_submit_ms // 1000
        ]) as job_run_key
    from staging.stg_queue_entries
),

records as (
    select
        cluster || '/' || job_id_raw || '@' || to_ms(submit_at) // 1000 as job_run_key,
        max_by(nullif(nullif(reason, ''), 'None'), coalesce(observed_at, submit_at)) as reason
    from raw.job_runs
    group by all
)

select
    job_run_key,
    coalesce(records.reason, arg_max(queued.reason, queued.since_ms)) as reason,
    arg_max(queued.message, queued.since_ms) as message,
    arg_max(queued.queue, queued.since_ms) as queue,
    arg_max(queued.cluster_queue, queued.since_ms) as cluster_queue,
    arg_max(queued.min_pods, queued.since_ms) as min_pods,
    arg_max(queued.evictions, queued.since_ms) as evictions,
    arg_max(queued.eviction_reason, queued.since_ms) as eviction_reason
from records
full join queued using (job_run_key)
group by job_run_key, records.reason
