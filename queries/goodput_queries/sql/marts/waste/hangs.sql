-- Hangs: collectives and transfers that never completed because a rank did not join, called another operation or died.
-- Sources are PyTorch's Flight Recorder and NCCL RAS; one row where both report the same ranks of an attempt.
-- grain: hang_key
-- access: team
-- skip_if_empty: raw.flight_records, raw.flight_groups, raw.comm_counts
-- communicator: name of the process group, or hash of the communicator (RAS)
-- operation: that the others wait in
-- sequence_number: of the operation: over all collectives of the group (Flight Recorder), of its kind (RAS); of a
--  transfer (send 0->1) over all of the waiting rank. RAS counts no transfers.
-- since_at: the first rank began to wait (RAS: first answer that shows it)
-- last_seen_at: latest evidence that it still hung
-- culprit_ranks: global ranks that the others waited for; null: all joined, the operation itself hangs
-- culprit_rank, culprit_node, culprit_gpu_uuid: null for several culprits; the node is set where they share it
-- what: missing, differs, no_dump, not_started, operation stands
-- waiting_ranks: ranks known to wait in it
-- is_root: false: each culprit waits in another hang itself, which is the root cause
-- evidence_sources: flight-recorder, nccl-ras or both
-- confidence: Confirmed (both sources name the same ranks), Likely (one does, and more wait than are behind), Not confirmed
with ranks as (select * from intermediate.int_hang_ranks),

waiting_places as (
    select distinct hang_key, place, since_ms, last_ms from ranks where role = 'waiting'
),

behind as (
    select
        ranks.*,
        exists (
            select 1 from waiting_places as elsewhere
            where
                elsewhere.place = ranks.place
                and elsewhere.hang_key <> ranks.hang_key
                and elsewhere.since_ms <= ranks.last_ms
                and elsewhere.last_ms >= ranks.since_ms
        ) as waits_elsewhere
    from ranks
    where ranks.is_behind
),

-- of several that are behind, those that wait for nobody are to blame
culprits as (
    select *
    from behind
    qualify not waits_elsewhere or bool_and(waits_elsewhere) over (partition by hang_key)
),

blamed as (
    select
        hang_key,
        any_value(role) as role,
        list(distinct rank order by rank) filter (where rank is not null) as ranks,
        list(distinct node) filter (where node is not null) as nodes,
        list(distinct gpu_uuid) filter (where gpu_uuid is not null) as gpu_uuids,
        bool_and(waits_elsewhere) as is_caused_elsewhere,
        max(rank_count) as reported_count,
        any_value(signature) as signature
    from culprits
    group by hang_key
),

hangs as (
    select
        hang_key,
        any_value(columns([
            'source', 'cluster', 'attempt_key', 'communicator', 'operation', 'sequence_number', 'message_bytes'
        ])),
        min(since_ms) as since_ms,
        max(last_ms) as last_ms,
        list(distinct rank order by rank) filter (where role = 'waiting' and rank is not null) as waiting_ranks,
        coalesce(max(rank_count) filter (where role = 'waiting' and source = 'nccl-ras'), count_if(role = 'waiting'))
            as waiting
    from ranks
    group by hang_key
),

described as (
    select
        hangs.* exclude (waiting),
        hangs.waiting::bigint as waiting,
        coalesce(blamed.role, 'operation stands') as what,
        blamed.ranks as culprit_ranks,
        greatest(coalesce(len(blamed.ranks), 0), coalesce(blamed.reported_count, 0)) as behind,
        case when len(blamed.nodes) = 1 then blamed.nodes[1] end as culprit_node,
        case when len(blamed.ranks) = 1 and len(blamed.gpu_uuids) = 1 then blamed.gpu_uuids[1] end as culprit_gpu_uuid,
        blamed.signature,
        not coalesce(blamed.is_caused_elsewhere, false) as is_root
    from hangs
    left join blamed using (hang_key)
),

-- RAS adds its word to a hang of the Flight Recorder in the same attempt that names the same ranks
agreed as (
    select recorder.hang_key, ras.hang_key as ras_key, ras.last_ms
    from described as recorder
    inner join described as ras
        on recorder.attempt_key = ras.attempt_key
        and recorder.culprit_ranks = ras.culprit_ranks
        and recorder.since_ms <= ras.last_ms
        and recorder.last_ms >= ras.since_ms
    where recorder.source = 'flight-recorder' and ras.source = 'nccl-ras'
    qualify row_number() over (partition by ras.hang_key order by recorder.is_root desc, recorder.since_ms, recorder.hang_key) = 1
),

merged as (
    select
        described.*,
        greatest(described.last_ms, seconded.last_ms) as last_seen_ms,
        seconded.hang_key is not null as is_seconded
    from described
    left join (select hang_key, max(last_ms) as last_ms from agreed group by hang_key) as seconded using (hang_key)
    where described.hang_key not in (select ras_key from agreed)
)

select
    merged.hang_key,
    coalesce(merged.cluster, attempts.cluster, 'default') as cluster,
    attempts.run_key,
    attempts.run_id,
    attempts.attempt,
    merged.communicator,
    merged.operation,
    merged.sequence_number,
    merged.message_bytes,
    from_ms(merged.since_ms) as since_at,
    from_ms(coalesce(merged.last_seen_ms, merged.last_ms)) as last_seen_at,
    merged.what,
    merged.culprit_ranks,
    case when len(merged.culprit_ranks) = 1 then merged.culprit_ranks[1] end as culprit_rank,
    merged.culprit_node,
    merged.culprit_gpu_uuid,
    merged.waiting_ranks,
    merged.is_root,
    merged.source || case when merged.is_seconded then ', nccl-ras' else '' end as evidence_sources,
    case
        when merged.is_seconded then 'Confirmed'
        when merged.what in ('missing', 'differs') and merged.behind < merged.waiting then 'Likely'
        else 'Not confirmed'
    end as confidence,
    case merged.what
        when 'missing' then 'has not launched '
        when 'differs' then 'launched ' || merged.signature || ' in the place of '
        when 'no_dump' then 'left no dump of '
        when 'not_started' then 'has not begun on its GPU '
        else 'all ranks came to '
    end || merged.operation || coalesce(' ' || merged.sequence_number, '') || ' of ' || merged.communicator
    || ', in which ' || merged.waiting || ' rank' || case when merged.waiting = 1 then ' waits' else 's wait' end
    as evidence
from merged
left join intermediate.int_attempts as attempts using (attempt_key)
where
    in_window(merged.since_ms, coalesce(merged.last_seen_ms, merged.last_ms) + 1)
    and in_scope(
        coalesce(merged.cluster, attempts.cluster, 'default'), merged.culprit_node, merged.culprit_gpu_uuid, null,
        attempts.team, attempts.user_name, attempts.run_key, attempts.partition
    )
