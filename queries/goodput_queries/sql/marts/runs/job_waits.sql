-- Waits of job runs that ask for GPUs: those that started in the scope's window, and those that wait at its end.
-- grain: job_run_key
-- access: team
-- queue: partition, LocalQueue, or queue of Volcano; cluster_queue: of Kueue, or the queue of Volcano
-- gpus: requested; gpu_type: MIG profile or type asked for; null: any
-- min_pods: a gang of Volcano starts with as many
-- since_at: eligible: a dependency is no wait; of Kueue and Volcano when it was queued, or evicted; null: not yet
-- is_started: it started in the window, or was admitted and no pod of it is known
-- wait_s: until its start, or the end of the window; null: it is not eligible
-- reason, message: as the scheduler, or the queue, gives them
-- evictions: how often the queue took its place away; eviction_reason: of the last time
with ends as (
    select cluster, least(as_of_ms, coalesce(chosen_to_ms(), as_of_ms)) as at_ms
    from intermediate.int_clusters
),

-- a queue's wait goes on in the job run of the pods, where these are known; else it starts when it is admitted
runs as (
    select * replace (case when state = 'ADMITTED' then record_end_ms else start_ms end as start_ms)
    from intermediate.int_job_runs
    where state <> 'POD_CREATED'
)

select
    runs.job_run_key,
    runs.cluster,
    runs.job_id,
    runs.job_name,
    runs.team,
    runs.user_name,
    coalesce(reasons.queue, runs.partition) as queue,
    reasons.* exclude (job_run_key, queue),
    runs.gpus_requested as gpus,
    runs.gpu_type_requested as gpu_type,
    from_ms(case when runs.eligible_ms <= ends.at_ms then runs.eligible_ms end) as since_at,
    coalesce(runs.start_ms <= ends.at_ms, false) as is_started,
    case when runs.eligible_ms <= least(runs.start_ms, ends.at_ms)
        then (least(coalesce(runs.start_ms, ends.at_ms), ends.at_ms) - runs.eligible_ms) / 1000
    end as wait_s
from runs
inner join ends using (cluster)
left join staging.stg_queue_reasons as reasons using (job_run_key)
left join intermediate.int_job_run_owners as owners using (job_run_key)
where
    runs.gpus_requested > 0
    and not runs.is_inferred
    and in_cluster(runs.cluster)
    and of_owner(runs.team, runs.user_name, owners.run_key, runs.partition)
    and (
        runs.start_ms >= scope_from_ms() and runs.start_ms <= ends.at_ms
        or runs.eligible_ms <= ends.at_ms
        and coalesce(runs.start_ms, runs.record_end_ms, forever_ms()) > ends.at_ms
    )
