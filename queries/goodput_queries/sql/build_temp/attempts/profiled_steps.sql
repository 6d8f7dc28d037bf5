-- Communication in steps by PyTorch profiler traces: a process' NCCL kernels by the step they started in.
-- grain: attempt_key, step, rank
-- skip_if_empty: temp.int_train_steps where exists (from raw.profiled_collectives)
-- exposed_ms: time in NCCL kernels while no other kernel ran
-- wait_ms: of it, waiting for late ranks: time over the shortest of the operation; null: not all ranks were traced
with processes as (
    select ranks.attempt_key, ranks.rank, ranks.pid, attempts.cluster, attempts.start_ms, attempts.end_ms
    from temp.int_rank_gpus as ranks
    inner join temp.int_attempts as attempts using (attempt_key)
    where ranks.pid is not null
),

kernels as (
    select
        processes.attempt_key,
        processes.rank,
        kernels.trace_id,
        kernels.start_ms,
        kernels.exposed_s * 1000 as exposed_ms,
        least(kernels.exposed_s, kernels.duration_s - min(kernels.duration_s) over operation) * 1000 as wait_ms,
        coalesce(count(*) over operation = kernels.ranks, false) as is_complete
    from staging.stg_profiled_collectives as kernels
    inner join processes
        on kernels.pid = processes.pid
        and kernels.rank = processes.rank
        and coalesce(kernels.cluster, processes.cluster) = processes.cluster
        and kernels.start_ms >= processes.start_ms
        and kernels.start_ms < coalesce(processes.end_ms, forever_ms())
    window operation as (
        partition by
            processes.attempt_key, kernels.group_name, kernels.ranks,
            coalesce(kernels.sequence_number, kernels.place), kernels.sequence_number is null
    )
),

in_steps as (
    select
        kernels.attempt_key,
        steps.step,
        kernels.rank,
        kernels.trace_id,
        sum(kernels.exposed_ms) as exposed_ms,
        case when bool_and(kernels.is_complete) then sum(kernels.wait_ms) end as wait_ms,
        count(*) as kernels
    from kernels
    asof join temp.int_rank_steps as steps
        on kernels.attempt_key = steps.attempt_key
        and kernels.rank = steps.rank
        and kernels.start_ms >= steps.start_ms
    where kernels.start_ms < steps.end_ms
    group by all
)

select attempt_key, step, rank, exposed_ms, wait_ms
from in_steps
-- a trace begins and ends inside a step, of which it has fewer kernels than of whole ones
qualify
    kernels >= 0.9 * max(kernels) over (partition by attempt_key, rank, trace_id)
    and row_number() over (partition by attempt_key, step, rank order by kernels desc, trace_id) = 1
