-- Holds inferred from job events, from a run's first to its last event, on nodes that no scheduler, label or Kubernetes
-- source covers. A run's GPUs on a host are those that its events name, instances of GPUs alone by no name; else those
-- that list its pids; else, one a rank, the GPU of its local rank, one with a process, or any: then `gpus` is their
-- number. A log of the gang is one rank, which has as many GPUs as processes that it prints (`world_size`), in equal
-- parts on the nodes of its logs.
-- grain: job_run_key, node, gpu_uuid, slurm_index, start_ms
-- job_run_key: a run from one start, after ten minutes without an event, to the next
-- slurm_index: of a GPU that no inventory knows: the local rank
-- gpus: how many GPUs of the node, where none is named
-- pids: of the attempt's ranks on the node; null: they say none
-- end_ms: of its last attempt the run's last event
-- is_last: of the run's last attempt
-- state: COMPLETED, FAILED (the job's last word), UNKNOWN
-- materialised: full, since ends and holds are asked of it
-- skip_if_empty: staging.stg_unscheduled
with gpus as (
    select
        gpus.cluster,
        gpus.node,
        gpus.gpu_uuid,
        min(coalesce(gpus.gpu_index, gpus.slurm_index)) as gpu_index
    from staging.stg_gpus as gpus
    inner join (select distinct cluster, node from staging.stg_unscheduled) as nodes using (cluster, node)
    group by gpus.cluster, gpus.node, gpus.gpu_uuid
),

bursts as (
    select
        *,
        count_if(is_new) over (partition by cluster, run_id order by first_ms, last_ms, place) as burst
    from (
        select
            *,
            coalesce(first_ms - max(last_ms) over (
                partition by cluster, run_id order by first_ms, last_ms, place
                rows between unbounded preceding and 1 preceding
            ) > threshold('label_absent_ms'), true) as is_new
        from (
            select
                *,
                row_number() over (order by node, attempt, rank, pid, local_rank, gpu_uuid, block) as place
            from staging.stg_event_presence
            -- early events of a scheduler's job, or events by another clock, belong to that job
            anti join (
                select cluster, unnest([job_id, job_id_raw]) as run_id from raw.job_runs
            ) using (cluster, run_id)
        )
    )
),

bursts_joined as (
    select
        cluster,
        run_id,
        burst,
        min(started_ms) - min(first_ms) as start_after_ms,
        min(attempt) as first_attempt,
        max(attempt) as last_attempt,
        list(distinct pid) filter (where pid > 0) as pids
    from bursts
    group by cluster, run_id, burst
),

-- after a silence another start, attempt or process begins another job run; else the job was silent
starts as (
    select
        cluster,
        run_id,
        burst,
        coalesce(start_after_ms <= threshold('label_absent_ms'), false)
        or coalesce(first_attempt > lag(last_attempt) over in_order, false)
        or not coalesce(list_has_any(pids, lag(pids) over in_order), true) as is_start
    from bursts_joined
    window in_order as (partition by cluster, run_id order by burst)
),

counted as (
    select
        *,
        count_if(is_start) over (partition by cluster, run_id order by burst rows unbounded preceding) as job_run
    from starts
),

events as (
    select
        bursts.*,
        min(bursts.first_ms) over job_run as submit_ms,
        max(bursts.last_ms) over job_run as until_ms,
        max(bursts.started_ms) over job_run as started_ms_of_run,
        max(bursts.ended_ms) over job_run as ended_ms_of_run,
        max(bursts.failed_ms) over job_run as failed_ms_of_run,
        arg_max(bursts.failed_kind, bursts.failed_ms) over job_run as failed_kind_of_run
    from bursts
    inner join counted using (cluster, run_id, burst)
    window job_run as (partition by bursts.cluster, bursts.run_id, counted.job_run)
),

job_runs as (
    select
        cluster,
        run_id,
        submit_ms,
        max(until_ms) as until_ms,
        case
            -- the scheduler's word for the end of the job, which is an end, too
            when max(failed_ms_of_run) >= coalesce(greatest(max(started_ms_of_run), max(ended_ms_of_run)), 0)
                and any_value(failed_kind_of_run) in ('preempted', 'cancelled', 'time_limit')
                then case any_value(failed_kind_of_run)
                    when 'time_limit' then 'TIMEOUT' else upper(any_value(failed_kind_of_run))
                end
            when max(ended_ms_of_run) >= coalesce(greatest(max(started_ms_of_run), max(failed_ms_of_run)), 0)
                then 'COMPLETED'
            when max(failed_ms_of_run) >= coalesce(max(started_ms_of_run), 0) then 'FAILED'
            else 'UNKNOWN'
        end as state
    from events
    group by cluster, run_id, submit_ms
),

-- numbered attempts may have other GPUs each
periods as (
    select
        *,
        coalesce(lead(first_ms) over in_order, until_ms) as end_ms,
        lead(first_ms) over in_order is null as is_last
    from (
        select cluster, run_id, submit_ms, attempt, min(first_ms) as first_ms, max(until_ms) as until_ms
        from events
        group by cluster, run_id, submit_ms, attempt
    )
    window in_order as (partition by cluster, run_id, submit_ms order by first_ms, attempt)
),

ranks as (
    select
        events.cluster,
        events.run_id,
        events.submit_ms,
        events.attempt,
        events.node,
        events.rank,
        periods.first_ms as start_ms,
        periods.end_ms,
        max(case when events.is_instance then -1 else events.local_rank end) as local_rank,
        list(distinct events.gpu_uuid) filter (where events.gpu_uuid <> '' and not events.is_instance) as gpu_uuids,
        list(distinct events.pid) filter (where events.pid > 0) as pids
    from (
        select
            *,
            -- a MIG instance by a name that no source of the node's GPUs has: not one GPU more
            starts_with(gpu_uuid, 'MIG-')
            and (cluster, node) in (select (cluster, node) from gpus)
            and gpu_uuid not in (select gpu_uuid from gpus) as is_instance
        from events
    ) as events
    inner join periods using (cluster, run_id, submit_ms, attempt)
    group by all
),

of_pids as (
    select distinct
        ranks.cluster, ranks.run_id, ranks.submit_ms, ranks.attempt, ranks.node, ranks.rank, gpus.gpu_uuid
    from (select *, unnest(pids) as pid from ranks where gpu_uuids is null) as ranks
    inner join gpus using (cluster, node)
    inner join staging.stg_process_presence as processes
        on gpus.gpu_uuid = processes.gpu_uuid
        and ranks.pid = processes.pid
        and processes.first_ms <= ranks.end_ms
        and processes.last_ms >= ranks.start_ms
),

named as (
    select cluster, run_id, submit_ms, attempt, node, rank, unnest(gpu_uuids) as gpu_uuid from ranks
    union
    from of_pids
),

named_by_others as (
    select distinct named.cluster, named.run_id, named.gpu_uuid, periods.first_ms, periods.end_ms
    from named
    inner join periods using (cluster, run_id, submit_ms, attempt)
),

unnamed as (
    select *
    from ranks
    anti join named using (cluster, run_id, submit_ms, attempt, node, rank)
),

by_local_rank as (
    select
        unnamed.* exclude (start_ms, end_ms, gpu_uuids, pids),
        gpus.gpu_uuid
    from unnamed
    left join gpus
        on unnamed.cluster = gpus.cluster
        and unnamed.node = gpus.node
        and unnamed.local_rank = gpus.gpu_index
    where
        unnamed.local_rank >= 0
        -- a rank beyond the GPUs that the node is known to have shares one
        and (gpus.gpu_uuid is not null or (unnamed.cluster, unnamed.node) not in (select (cluster, node) from gpus))
),

world_sizes as (
    select
        periods.cluster,
        periods.run_id,
        periods.submit_ms,
        periods.attempt,
        max((metrics.extra ->> '$.world_size')::bigint) as processes
    from raw.job_events as metrics
    left join staging.stg_node_clusters as node_clusters on metrics.host = node_clusters.node
    inner join periods
        on coalesce(metrics.cluster, node_clusters.cluster, 'default') = periods.cluster
        and metrics.run_id = periods.run_id
        and to_ms(metrics.ts) between periods.first_ms and periods.end_ms
    where metrics.event = 'metric' and metrics.kind = 'world_size'
    group by periods.cluster, periods.run_id, periods.submit_ms, periods.attempt
),

of_logs as (
    select
        ranks.cluster,
        ranks.run_id,
        ranks.submit_ms,
        ranks.attempt,
        any_value(world_sizes.processes) // count(distinct ranks.node) as gpus_per_node
    from ranks
    inner join world_sizes using (cluster, run_id, submit_ms, attempt)
    group by ranks.cluster, ranks.run_id, ranks.submit_ms, ranks.attempt
    having count(distinct ranks.rank) = 1
),

rest as (
    select
        *,
        row_number() over (partition by cluster, run_id, submit_ms, attempt, node order by rank) as nth
    from (
        select unnamed.*, unnest(range(greatest(coalesce(of_logs.gpus_per_node, 1), 1)))
        from unnamed
        left join of_logs using (cluster, run_id, submit_ms, attempt)
        where unnamed.local_rank < 0
    )
),

-- ranks that say nothing of their GPU are on those with a process that no event accounts for, longest first
with_process as (
    select
        *,
        row_number() over (
            partition by cluster, run_id, submit_ms, attempt, node order by listed_ms desc, gpu_index, gpu_uuid
        ) as nth
    from (
        select
            periods.cluster,
            periods.run_id,
            periods.submit_ms,
            periods.attempt,
            gpus.node,
            gpus.gpu_uuid,
            any_value(gpus.gpu_index) as gpu_index,
            sum(least(processes.last_ms, periods.end_ms) - greatest(processes.first_ms, periods.first_ms)) as listed_ms
        from periods
        semi join rest using (cluster, run_id, submit_ms, attempt)
        inner join gpus using (cluster)
        inner join staging.stg_process_presence as processes
            on gpus.gpu_uuid = processes.gpu_uuid
            and processes.pid >= 0
            and processes.first_ms <= periods.end_ms
            and processes.last_ms >= periods.first_ms
        left join named_by_others as others
            on gpus.gpu_uuid = others.gpu_uuid
            and (periods.cluster, periods.run_id) <> (others.cluster, others.run_id)
            and others.first_ms < periods.end_ms
            and others.end_ms > periods.first_ms
        where others.gpu_uuid is null
        group by periods.cluster, periods.run_id, periods.submit_ms, periods.attempt, gpus.node, gpus.gpu_uuid
    )
),

of_rest as (
    select rest.*, with_process.gpu_uuid
    from rest
    left join with_process using (cluster, run_id, submit_ms, attempt, node, nth)
),

reported as (
    select cluster, run_id, submit_ms, attempt, node, gpu_uuid, null::integer as slurm_index, null::integer as gpus
    from named
    union
    select cluster, run_id, submit_ms, attempt, node, gpu_uuid, case when gpu_uuid is null then local_rank end, null
    from by_local_rank
    union
    select cluster, run_id, submit_ms, attempt, node, gpu_uuid, null, null
    from of_rest
    where gpu_uuid is not null
    union all
    select cluster, run_id, submit_ms, attempt, node, null, null, count(*)::integer
    from of_rest
    where gpu_uuid is null
    group by all
),

node_pids as (
    select cluster, run_id, submit_ms, attempt, node, flatten(list(pids)) as pids
    from ranks
    where pids is not null
    group by cluster, run_id, submit_ms, attempt, node
)

select
    reported.cluster || '/' || reported.run_id || '@' || reported.submit_ms // 1000 as job_run_key,
    reported.* exclude (attempt),
    node_pids.pids,
    periods.first_ms as start_ms,
    periods.end_ms,
    periods.is_last,
    job_runs.state
from reported
inner join periods using (cluster, run_id, submit_ms, attempt)
inner join job_runs using (cluster, run_id, submit_ms)
left join node_pids using (cluster, run_id, submit_ms, attempt, node)
