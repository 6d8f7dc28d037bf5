-- GPU of each rank of an attempt: as the rank reports it, else NCCL, else the n-th rank of a node has the n-th GPU that its
-- job run holds there; also where the job run holds numbered slots, for which no source has the UUID of the rank.
-- grain: attempt_key, rank
-- method: said (by the job), mapped (by NCCL), assumed
-- materialised: attempts, since splits and stragglers join it
-- skip_if_empty: temp.attempt_events
with events as (
    select
        events.attempt_key,
        any_value(attempts.job_run_key) as job_run_key,
        events.rank,
        any_value(attempts.cluster) as cluster,
        any_value(attempts.start_ms) as attempt_start_ms,
        any_value(attempts.end_ms) as attempt_end_ms,
        max(events.host) as node,
        max(events.gpu_uuid) as gpu_uuid,
        max(events.pid) as pid
    from temp.attempt_events as events
    inner join temp.int_attempts as attempts using (attempt_key)
    where events.rank is not null
    group by events.attempt_key, events.rank
),

ranks as (
    select
        *,
        row_number() over (partition by attempt_key, node order by rank) as place,
        count(*) over (partition by attempt_key, node) as ranks_on_node
    from events
),

-- NCCL's own logs name the GPU of a process; a process id is used again after a while
mapped as (
    select ranks.attempt_key, ranks.rank, processes.gpu_uuid
    from ranks
    inner join temp.comm_processes as processes using (cluster, node, pid)
    where
        processes.last_seen_ms is null
        or processes.last_seen_ms between ranks.attempt_start_ms
            and coalesce(ranks.attempt_end_ms, processes.last_seen_ms)
    qualify row_number() over (
        partition by ranks.attempt_key, ranks.rank 
            order by processes.is_world desc, processes.last_seen_ms desc nulls last, processes.gpu_uuid
    ) = 1
),

held as (
    select
        job_run_key,
        node,
        gpu_uuid,
        starts_with(gpu_uuid, cluster || '/' || node || '#') as is_slot,
        row_number() over (partition by job_run_key, node order by slurm_index, gpu_uuid) as place,
        count(*) over (partition by job_run_key, node) as gpus_on_node
    from (
        select distinct job_run_key, cluster, node, gpu_uuid, slurm_index
        from intermediate.int_holds
        semi join temp.int_attempts using (job_run_key)
    )
)

select
    ranks.attempt_key,
    ranks.rank,
    ranks.cluster,
    ranks.node,
    ranks.pid,
    coalesce(case when held.is_slot then held.gpu_uuid end, ranks.gpu_uuid, mapped.gpu_uuid, held.gpu_uuid) as gpu_uuid,
    case
        when held.is_slot then 'assumed'
        when ranks.gpu_uuid is not null then 'said'
        when mapped.gpu_uuid is not null then 'mapped'
        when held.gpu_uuid is not null then 'assumed'
    end as method
from ranks
left join mapped using (attempt_key, rank)
left join held
    on ranks.job_run_key = held.job_run_key
    and ranks.node = held.node
    and ranks.place = held.place
    and ranks.ranks_on_node = held.gpus_on_node
