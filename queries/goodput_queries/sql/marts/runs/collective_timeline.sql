-- Collectives of runs rank by rank, where the source says when they ran: verbose records of the NCCL Inspector, and kernels of
-- PyTorch profiler traces.
-- grain: run_key, attempt, source, comm, operation, sequence_number, rank
-- access: team
-- source: NCCL Inspector, profiler trace; sequence_number: of the operation in its communicator
-- rank: in the job; comm: communicator (NCCL's hash), or process group of the trace
-- start_at: first kernel as the host noticed it, or as the trace has it; exec_s: time on the GPU, waiting for late ranks included
-- waited_s: over the least of the operation's ranks; null: one rank alone was read
-- size_bytes: as the source counts it; null: not recorded
with processes as (
    select
        attempts.run_key, attempts.attempt, attempts.attempt_key, attempts.cluster, ranks.rank, ranks.node, ranks.pid,
        attempts.start_ms, attempts.end_ms
    from intermediate.int_rank_gpus as ranks
    inner join intermediate.int_attempts as attempts using (attempt_key)
    where
        ranks.pid is not null
        and of_teams(attempts.team)
        and in_cluster(attempts.cluster)
        and in_run(attempts.run_key)
        and in_window(attempts.start_ms, attempts.end_ms)
),

operations as (
    select
        processes.run_key,
        processes.attempt,
        processes.rank,
        'NCCL Inspector' as source,
        collectives.comm_id as comm,
        collectives.operation,
        collectives.sequence_number,
        collectives.kernel_start_at as start_at,
        collectives.exec_time_s as exec_s,
        collectives.message_bytes as size_bytes
    from staging.stg_collectives as collectives
    inner join processes using (cluster, node, pid)
    where
        not collectives.is_p2p
        and collectives.kernel_start_at is not null
        and collectives.dumped_at >= from_ms(processes.start_ms)
        and collectives.dumped_at < coalesce(from_ms(processes.end_ms + one_hour_ms()), latest_at())
        -- written after it ran, as a rule within the hour: only that much of the table is read
        and collectives.dumped_at >= from_ms(scope_from_ms())
        and collectives.dumped_at < coalesce(from_ms(chosen_to_ms() + one_hour_ms()), latest_at())
    union all
    select
        processes.run_key,
        processes.attempt,
        processes.rank,
        'profiler trace',
        kernels.group_name,
        coalesce(kernels.operation, 'NCCL kernel'),
        coalesce(kernels.sequence_number, kernels.place),
        kernels.start_at,
        kernels.duration_s,
        kernels.message_bytes
    from staging.stg_profiled_collectives as kernels
    inner join processes
        on kernels.pid = processes.pid
        and kernels.rank = processes.rank
        and coalesce(kernels.cluster, processes.cluster) = processes.cluster
        and kernels.start_ms >= processes.start_ms
        and kernels.start_ms < coalesce(processes.end_ms, forever_ms())
)

select
    *,
    case when count(*) over operation > 1 then exec_s - min(exec_s) over operation end as waited_s
from operations
where start_at >= from_ms(scope_from_ms()) and start_at < scope_to_at()
window operation as (partition by run_key, attempt, source, comm, operation, sequence_number)
qualify row_number() over (partition by run_key, attempt, source, comm, operation, sequence_number, rank order by start_at) = 1
