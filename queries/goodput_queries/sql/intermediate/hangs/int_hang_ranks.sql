-- Role of each rank in each hang, from any source: its attempt, global rank, node and GPU where they are known.
-- A hang of Flight Recorder dumps, which name no job, belongs to the only attempt that had just these ranks
-- then; of several, to the one whose run or job stands in the folder's name.
-- grain: hang_key, rank
-- place: identifies a process among those of the same gang in every communicator
-- is_behind: it is one of those that the others wait for: the first of missing, differs, no_dump, not_started
--  that there is in the hang
with attempt_ranks as (
    select
        attempt_key,
        list(rank order by rank) as ranks
    from intermediate.int_rank_gpus
    group by attempt_key
),

flight_ranks as (
    select * from intermediate.int_flight_hang_ranks
    union all by name
    select * from intermediate.int_flight_p2p_hang_ranks
),

gangs as (
    select
        gang_key,
        any_value(cluster) as cluster,
        any_value(dump_set) as dump_set,
        min(since_ms) as since_ms,
        list(distinct rank order by rank) as ranks
    from flight_ranks
    group by gang_key
),

gang_attempts as (
    select
        gangs.gang_key,
        attempts.attempt_key,
        regexp_matches(
            gangs.dump_set,
            '(^|[^0-9A-Za-z])(' || regexp_escape(attempts.run_id) || '|' || regexp_escape(attempts.job_id)
            || ')([^0-9A-Za-z]|$)'
        ) as is_named
    from gangs
    inner join intermediate.int_attempts as attempts
        on gangs.since_ms >= attempts.start_ms
        and gangs.since_ms < coalesce(attempts.end_ms, forever_ms())
        and coalesce(gangs.cluster, attempts.cluster) = attempts.cluster
    inner join attempt_ranks
        on attempts.attempt_key = attempt_ranks.attempt_key
        and list_has_all(attempt_ranks.ranks, gangs.ranks)
    qualify count(*) over (partition by gangs.gang_key) = 1
        or (is_named and count_if(is_named) over (partition by gangs.gang_key) = 1)
),

flight as (
    select
        hangs.* exclude (gang_key, dump_set, group_name, group_description),
        'flight-recorder' as source,
        gang_attempts.attempt_key,
        coalesce(hangs.group_description, hangs.group_name) as communicator,
        1::bigint as rank_count,
        coalesce(gang_attempts.attempt_key, hangs.gang_key) || '|' || hangs.rank as place,
        ranks.node,
        ranks.gpu_uuid
    from flight_ranks as hangs
    left join gang_attempts using (gang_key)
    left join intermediate.int_rank_gpus as ranks
        on gang_attempts.attempt_key = ranks.attempt_key and hangs.rank = ranks.rank
),

worlds as (
    select cluster, node, pid, max(rank) as rank from intermediate.int_comm_processes
    where is_world
    group by cluster, node, pid
    having count(distinct rank) = 1
),

communicators as (
    select
        hangs.hang_key,
        'nccl-ras' as source,
        coalesce(attempts.cluster, hangs.cluster, processes.cluster) as cluster,
        attempts.attempt_key,
        hangs.comm_id as communicator,
        hangs.operation,
        hangs.launched + 1 as sequence_number,
        null::bigint as message_bytes,
        coalesce(ranks.rank, worlds.rank, hangs.rank) as rank,
        hangs.role,
        null as signature,
        hangs.rank_count::bigint as rank_count,
        coalesce(
            attempts.attempt_key || '|' || ranks.rank,
            processes.node || '|' || processes.pid,
            hangs.comm_id || '|' || hangs.rank
        ) as place,
        coalesce(ranks.node, processes.node) as node,
        coalesce(ranks.gpu_uuid, processes.gpu_uuid) as gpu_uuid,
        hangs.since_ms,
        hangs.last_ms
    from intermediate.int_comm_hang_ranks as hangs
    left join intermediate.int_comm_processes as processes
        on hangs.comm_id = processes.comm_id and hangs.rank = processes.rank
    left join worlds
        on processes.cluster = worlds.cluster and processes.node = worlds.node and processes.pid = worlds.pid
    left join intermediate.int_rank_gpus as ranks
        on processes.cluster = ranks.cluster and processes.node = ranks.node and processes.pid = ranks.pid
    left join intermediate.int_attempts as attempts
        on ranks.attempt_key = attempts.attempt_key
        and hangs.since_ms >= attempts.start_ms
        and hangs.since_ms < coalesce(attempts.end_ms, forever_ms())
    -- a process number may have been used by an earlier attempt on the node
    qualify row_number() over (
        partition by hangs.hang_key, hangs.role, hangs.rank
        order by attempts.start_ms desc nulls last, attempts.attempt_key, ranks.rank
    ) = 1
),

seen as (
    select * from flight
    union all by name
    select * from communicators
),

ranked as (
    select
        *,
        list_position(['missing', 'differs', 'no_dump', 'not_started'], role) as precedence
    from seen
)

select
    * exclude (precedence),
    coalesce(precedence = min(precedence) over (partition by hang_key), false) as is_behind
from ranked
