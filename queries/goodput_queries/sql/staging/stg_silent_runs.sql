-- End of runs that sent events but no end event, on nodes without a scheduler. A run lives while lists show its
-- processes; where they show none, while any process on its GPUs, or activity, goes on; it ends 15 minutes after that.
-- grain: job_run_key
-- alive_ms: the last sign of life: an event, a process, activity
-- end_ms: null: it runs: its cluster's evidence is not 15 minutes past the last sign, and its GPUs were read after the
--     last event; where they were not (a recording ends) it ended with that
-- is_stalled: it lived for 15 minutes and more after its last event
-- materialised: full, since holds are asked of it
-- skip_if_empty: staging.stg_unscheduled
with gpus as (
    select gpus.cluster, gpus.gpu_uuid, min(nodes.until_ms) as until_ms
    from staging.stg_gpus as gpus
    inner join (select distinct cluster, node, until_ms from staging.stg_unscheduled) as nodes using (cluster, node)
    group by gpus.cluster, gpus.gpu_uuid
),

holds as (select * from staging.stg_event_holds where is_last and state = 'UNKNOWN'),

-- from when another job, or a scheduler, claims one of its GPUs
others as (
    select holds.job_run_key, min(greatest(others.start_ms, holds.end_ms)) as limit_ms
    from holds
    inner join staging.stg_event_holds as others
        on holds.gpu_uuid = others.gpu_uuid
        and holds.job_run_key <> others.job_run_key
        and others.end_ms > holds.end_ms
    group by holds.job_run_key
    union all
    select holds.job_run_key, min(gpus.until_ms)
    from holds
    inner join gpus using (cluster, gpu_uuid)
    where gpus.until_ms is not null
    group by holds.job_run_key
),

limits as (select job_run_key, min(limit_ms) as limit_ms from others group by job_run_key),

on_gpus as (
    select distinct holds.job_run_key, processes.pid, coalesce(list_contains(holds.pids, processes.pid), false) as is_own
    from holds
    inner join staging.stg_process_presence as processes
        on holds.gpu_uuid = processes.gpu_uuid
        and processes.pid >= 0
        and processes.first_ms <= holds.end_ms
        and processes.last_ms >= holds.start_ms
),

with_own as (select distinct job_run_key from on_gpus where is_own),

signs as (
    select holds.job_run_key, holds.end_ms as event_ms, processes.first_ms, processes.last_ms
    from holds
    inner join staging.stg_process_presence as processes
        on holds.gpu_uuid = processes.gpu_uuid and processes.last_ms > holds.end_ms
    inner join on_gpus on holds.job_run_key = on_gpus.job_run_key and processes.pid = on_gpus.pid
    left join with_own on holds.job_run_key = with_own.job_run_key
    where on_gpus.is_own or with_own.job_run_key is null
    union all
    select holds.job_run_key, holds.end_ms, activity.first_ms, activity.last_ms
    from holds
    inner join staging.stg_activity_presence as activity
        on holds.gpu_uuid = activity.gpu_uuid and activity.last_ms > holds.end_ms
    anti join with_own on holds.job_run_key = with_own.job_run_key
),

marked as (
    select
        signs.job_run_key,
        signs.first_ms,
        least(signs.last_ms, limits.limit_ms) as last_ms,
        signs.first_ms - greatest(signs.event_ms, max(signs.last_ms) over (
            partition by signs.job_run_key order by signs.first_ms, signs.last_ms
            rows between unbounded preceding and 1 preceding
        )) >= threshold('silent_log_min_ms') as is_after_silence
    from signs
    left join limits using (job_run_key)
    where signs.first_ms < coalesce(limits.limit_ms, forever_ms())
),

lives as (
    select job_run_key, max(last_ms) as alive_ms
    from (
        select
            *,
            count_if(is_after_silence) over (
                partition by job_run_key order by first_ms, last_ms rows unbounded preceding
            ) as silences
        from marked
    )
    where silences = 0
    group by job_run_key
),

reads as (
    select gpu_uuid, max(last_ms) as last_ms
    from (
        select gpu_uuid, last_ms from staging.stg_process_presence
        union all
        select gpu_uuid, last_ms from state.reading_series
    )
    group by gpu_uuid
),

seen as (
    select cluster, max(last_ms) as seen_ms
    from (
        select gpus.cluster, reads.last_ms from reads inner join gpus using (gpu_uuid)
        union all
        select cluster, last_ms from staging.stg_event_presence
    )
    group by cluster
),

runs as (
    select
        holds.job_run_key,
        holds.cluster,
        max(holds.end_ms) as event_ms,
        coalesce(bool_or(reads.last_ms > holds.end_ms), false) as is_watched
    from holds
    left join reads using (gpu_uuid)
    group by holds.job_run_key, holds.cluster
)

select
    runs.job_run_key,
    coalesce(lives.alive_ms, runs.event_ms) as alive_ms,
    case
        when
            not runs.is_watched
            or limits.limit_ms is not null
            or seen.seen_ms - coalesce(lives.alive_ms, runs.event_ms) >= threshold('silent_log_min_ms')
            then coalesce(lives.alive_ms, runs.event_ms)
    end as end_ms,
    coalesce(lives.alive_ms - runs.event_ms >= threshold('silent_log_min_ms'), false) as is_stalled
from runs
inner join seen using (cluster)
left join lives using (job_run_key)
left join limits using (job_run_key)
