-- Step rhythm of the scope's attempts from their collectives (NCCL Inspector, verbose), for jobs that report no steps: a
-- step calls the same operations in the same sizes, so that one which it calls once comes at the pace of steps. It is
-- inferred and never enters the ledger; reported steps are marts.train_steps.
-- The operation is the rarest of those with at least 1 % of the bytes whose distances vary little: what comes several times
-- a step has shorter distances, what is called every tenth step has few bytes.
-- grain: attempt_key
-- access: team
-- period_ms: median distance of starts; error_ms: median deviation of the distances; null: no rhythm
-- operations: number of starts; operation, message_bytes: which
-- method: how it was inferred
-- reason: why there is no rhythm
-- confidence: Likely; null where there is no rhythm
with attempts as (
    select attempt_key, run_key, attempt, attempts.cluster, job_run_key, start_ms, coalesce(end_ms, clusters.as_of_ms) as end_ms
    from intermediate.int_attempts as attempts
    inner join intermediate.int_clusters as clusters using (cluster)
    where
        in_window(attempts.start_ms, attempts.end_ms)
        and of_owner(attempts.team, attempts.user_name, attempts.run_key, attempts.partition)
        and in_cluster(attempts.cluster)
),

on_nodes as (
    select
        job_run_key,
        cluster,
        node,
        min(start_ms) as start_ms,
        max(coalesce(end_ms, forever_ms())) as end_ms
    from intermediate.int_holds
    group by job_run_key, cluster, node
),

-- of two jobs on one node the Inspector does not say whose a process is
nodes as (
    select mine.job_run_key, mine.cluster, mine.node
    from on_nodes as mine
    where
        mine.job_run_key in (select job_run_key from attempts)
        and not exists (
            select 1
            from on_nodes as other
            where
                other.cluster = mine.cluster
                and other.node = mine.node
                and other.job_run_key != mine.job_run_key
                and other.start_ms < mine.end_ms
                and other.end_ms > mine.start_ms
        )
),

started as (
    select
        attempts.attempt_key,
        collectives.comm_id,
        collectives.operation,
        collectives.message_bytes,
        collectives.rank,
        epoch_us(collectives.started_at) / 1000.0 as at_ms
    from staging.stg_collectives as collectives
    inner join nodes on collectives.cluster = nodes.cluster and collectives.node = nodes.node
    inner join attempts
        on nodes.job_run_key = attempts.job_run_key
        and collectives.started_ms >= attempts.start_ms
        and collectives.started_ms < attempts.end_ms
    where not collectives.is_p2p and collectives.started_at is not null
),

-- of each communicator one rank
of_ranks as (
    select * from started qualify rank = min(rank) over (partition by attempt_key, comm_id)
),

distances as (
    select
        *,
        at_ms - lag(at_ms) over (partition by attempt_key, comm_id, operation, message_bytes order by at_ms) as distance_ms
    from of_ranks
),

kinds as (
    select
        attempt_key,
        comm_id,
        operation,
        message_bytes,
        count(*) as operations,
        count(*) * message_bytes as all_bytes,
        median(distance_ms) as period_ms,
        mad(distance_ms) as error_ms
    from distances
    group by attempt_key, comm_id, operation, message_bytes
),

judged as (
    select
        *,
        operations >= threshold('inferred_operations')
        and error_ms <= threshold('inferred_spread') * period_ms
        and all_bytes >= 0.01 * sum(all_bytes) over (partition by attempt_key) as is_rhythm
    from kinds
),

chosen as (
    select *
    from judged
    qualify row_number() over (partition by attempt_key order by is_rhythm desc, period_ms desc, operations desc, comm_id) = 1
)

select
    attempts.run_key,
    attempts.attempt,
    attempts.attempt_key,
    case when chosen.is_rhythm then columns(['period_ms', 'error_ms', 'operations', 'operation', 'message_bytes']) end,
    case when chosen.is_rhythm then 'inferred from collectives' end as method,
    case when chosen.is_rhythm then 'Likely' end as confidence,
    case
        when chosen.attempt_key is null
            then 'no starts of its collectives are known, and readings of GPUs cannot distinguish a rhythm from an alias of it'
        when not chosen.is_rhythm then 'no collective comes at a steady distance'
    end as reason
from attempts
left join chosen using (attempt_key)
