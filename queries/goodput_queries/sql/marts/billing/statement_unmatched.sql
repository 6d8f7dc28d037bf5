-- GPU time of the scope's window whose owner, placement or price is uncertain: the caveats of a statement.
-- grain: cluster, kind, what_to_do
-- evaluated: first
with unpriced as (
    select cluster, job_run_key, gpu_ms
    from marts.ledger_scoped_by_node
    where job_run_key is not null and price_per_gpu_h is null
),

assumed as (
    select distinct job_run_key, gpu_uuid, gpu_instance from intermediate.int_holds where method = 'assumed'
),

placed as (
    select ledger.cluster, ledger.job_run_key, ledger.gpu_ms
    from marts.ledger_scoped as ledger
    semi join assumed using (job_run_key, gpu_uuid, gpu_instance)
),

-- what telemetry saw at work inside time that was allocated to no job run
unclaimed as (
    select
        segments.cluster,
        activity.gpu_uuid,
        share_ms(
            greatest(activity.start_ms, segments.start_ms, scope_start(segments.start_ms)),
            least(activity.end_ms, segments.end_ms, scope_end(segments.end_ms)),
            segments.share_lo, segments.share_hi, segments.share_of
        ) as gpu_ms
    from intermediate.int_ledger_segments as segments
    inner join intermediate.int_gpu_activity as activity
        on activity.gpu_uuid = segments.gpu_uuid
        and activity.gpu_instance = segments.gpu_instance
        and activity.hour_ms = segments.hour_ms
        and activity.start_ms < least(segments.end_ms, scope_end(segments.end_ms))
        and activity.end_ms > greatest(segments.start_ms, scope_start(segments.start_ms))
    where
        segments.job_run_key is null
        -- without a scheduler activity is somebody's
        and segments.category <> 'busy_unclassified'
        and activity.is_active
        -- a reading that covers more than the free time may be of a job that begins or ends in it
        and greatest(activity.first_reading_ms, segments.start_ms + activity.interval_ms)
            <= least(activity.end_ms, segments.end_ms)
        and in_window(segments.start_ms, segments.end_ms)
        and in_cluster(segments.cluster)
)

select cluster, 'allocated without a price' as kind, count(distinct job_run_key) as n, sum(gpu_ms)::bigint as gpu_ms,
    'Add a row to the rate card and ingest it (source rates)' as what_to_do
from unpriced
group by cluster
union all
select placed.cluster, 'placed on GPUs by assumption', count(distinct job_run_key), sum(gpu_ms)::bigint,
    if(ownership = 'job_event',
        'No record names the GPUs: as many are counted as processes that events or log name, else one',
        'The amount is right, which GPU is not known: ingest `scontrol show job -d` while jobs run')
from placed
inner join intermediate.int_job_runs using (job_run_key)
group by placed.cluster, ownership = 'job_event'
union all
select cluster, 'busy with no job', count(distinct gpu_uuid), sum(gpu_ms)::bigint,
    'Ingest the scheduler''s records of that time (as sacct); else look who uses these GPUs'
from unclaimed
group by cluster
