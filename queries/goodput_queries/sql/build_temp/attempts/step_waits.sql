-- Waits of each rank for others in the collectives of a step. In a synchronising operation each rank is busy from its
-- arrival to the common end, so the last to arrive waits least: a rank's wait is its time less the shortest. The longest
-- wait over the step's operations counts: their sum would count one delay twice.
-- grain: attempt_key, step, rank
-- skip_if_empty: temp.int_train_steps where exists (from raw.collectives)
-- wait_ms: longest wait over the operations that started in the step on this rank
--  and were seen on all ranks; null: none was
-- comm_ms: time in all operations and transfers that started in the step, whether compute ran meanwhile or not
with processes as (
    select attempt_key, rank, cluster, node, pid from temp.int_rank_gpus where pid is not null
),

operations as (
    select
        processes.attempt_key,
        processes.rank,
        collectives.started_ms,
        collectives.exec_time_s * 1000 as exec_ms,
        collectives.exec_time_s * 1000 - min(collectives.exec_time_s * 1000) over operation as wait_ms,
        not collectives.is_p2p and count(*) over operation = collectives.ranks as is_complete
    from staging.stg_collectives as collectives
    inner join processes using (cluster, node, pid)
    where collectives.started_ms is not null and collectives.ranks > 1
    window operation as (
        partition by
            processes.attempt_key, collectives.comm_id, collectives.operation, collectives.sequence_number
    )
),

windows as (
    select
        steps.attempt_key,
        processes.rank,
        steps.step,
        coalesce(rank_steps.start_ms, steps.start_ms) as start_ms,
        coalesce(rank_steps.end_ms, steps.end_ms) as end_ms
    from temp.int_train_steps as steps
    semi join operations using (attempt_key)
    inner join processes using (attempt_key)
    left join temp.int_rank_steps as rank_steps
        on steps.attempt_key = rank_steps.attempt_key
        and processes.rank = rank_steps.rank
        and steps.step = rank_steps.step
)

select
    operations.attempt_key,
    windows.step,
    operations.rank,
    max(operations.wait_ms) filter (where operations.is_complete) as wait_ms,
    sum(operations.exec_ms) as comm_ms
from operations
asof join windows
    on operations.attempt_key = windows.attempt_key
    and operations.rank = windows.rank
    and operations.started_ms >= windows.start_ms
where operations.started_ms < windows.end_ms
group by operations.attempt_key, windows.step, operations.rank
