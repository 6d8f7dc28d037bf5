-- When processes sent job events on nodes without a scheduler, in blocks of ten minutes.
-- grain: cluster, node, run_id, attempt, rank, pid, local_rank, gpu_uuid, block
-- attempt, local_rank: -1 where it is not said; pid: 0; gpu_uuid: empty
-- block: ten minutes since the epoch
-- first_ms, last_ms: the first and the last moment of its events
-- started_ms, ended_ms, failed_ms: the last job.start, job.end, failure; null: none
-- failed_kind: of that failure
-- materialised: merged, since each build reads the events of new loads alone
-- skip_if_empty: staging.stg_unscheduled
select
    events.cluster,
    hosts.node,
    events.run_id,
    coalesce(events.attempt, -1) as attempt,
    events.rank,
    coalesce(events.pid, 0) as pid,
    coalesce(events.local_rank, -1) as local_rank,
    coalesce(events.gpu_uuid, '') as gpu_uuid,
    events.end_ms // ten_minutes_ms() as block,
    min(events.start_ms) as first_ms,
    max(events.end_ms) as last_ms,
    max(events.end_ms) filter (where events.event = 'job.start') as started_ms,
    max(events.end_ms) filter (where events.event = 'job.end') as ended_ms,
    max(events.end_ms) filter (where events.event = 'failure') as failed_ms,
    arg_max(events.kind, events.end_ms) filter (where events.event = 'failure') as failed_kind
from staging.stg_job_events as events
inner join staging.stg_unscheduled as hosts on events.cluster = hosts.cluster and events.host = hosts.host
where
    events.load_sequence > merged_sequence()
    and (hosts.until_ms is null or events.end_ms < hosts.until_ms)
group by all
