-- Transfers between two ranks (send, recv) that a rank stood in when its Flight Recorder was dumped, and what the
-- other rank did: one that has no open operation on its side has not launched it, since a transfer whose other side
-- was done would be done too. What both ranks stand in stands itself.
-- grain: hang_key, rank
-- gang_key: the processes that dumped together
-- operation: send 0->1, by global ranks, whichever of the two waits
-- role: missing (has not launched its side), no_dump (said nothing), waiting
-- sequence_number: how many transfers of the group the waiting rank had launched; ranks count each for themselves
with open_records as (
    select
        records.*,
        groups.* exclude (dump_set, rank, group_name, last_enqueued, last_completed),
        regexp_extract(records.operation, '^(send|recv) ?([0-9]{1,6})(->|<-)([0-9]{1,6})$', 1) as kind,
        try_cast(
            regexp_extract(records.operation, '^(send|recv) ?([0-9]{1,6})(->|<-)([0-9]{1,6})$', 4) as integer
        ) as peer_in_group
    from staging.stg_flight_records as records
    inner join staging.stg_flight_groups as groups
        on records.dump_set = groups.dump_set
        and records.rank = groups.rank
        and records.group_name = groups.group_name
        and records.created_ms <= groups.stop_last_ms
    where records.is_p2p
    -- a restarted job writes to the same names: the record is of the first stop after it
    qualify row_number() over (
        partition by records.dump_set, records.rank, records.record_id, records.created_ms
        order by groups.stop
    ) = 1
),

sides as (
    select
        *,
        -- names have ranks of the group
        coalesce(ranks[peer_in_group + 1], peer_in_group) as peer
    from open_records
    where
        kind <> ''
        and state <> 'completed'
        and stop_last_ms - created_ms
        >= least(coalesce(nullif(timeout_ms, 0), threshold('hang_min_ms')), threshold('hang_min_ms'))
),

waiting as (
    select
        dump_set,
        stop,
        group_name,
        rank,
        peer,
        case kind when 'send' then rank else peer end as from_rank,
        case kind when 'send' then peer else rank end as to_rank,
        any_value(cluster) as cluster,
        any_value(group_description) as group_description,
        min(p2p_sequence_number) as sequence_number,
        max(message_bytes) as message_bytes,
        min(created_ms) as since_ms,
        max(stop_last_ms) as last_ms
    from sides
    group by all
),

-- the other rank, where it does not wait in the same transfer itself
others as (
    select
        waiting.* exclude (rank),
        waiting.peer as rank,
        case
            when groups.rank is null then 'no_dump'
            else 'missing'
        end as role
    from waiting
    left join staging.stg_flight_groups as groups
        on waiting.dump_set = groups.dump_set
        and waiting.stop = groups.stop
        and waiting.group_name = groups.group_name
        and waiting.peer = groups.rank
    where not exists (
        select 1 from waiting as same
        where
            same.dump_set = waiting.dump_set
            and same.stop = waiting.stop
            and same.group_name = waiting.group_name
            and same.rank = waiting.peer
            and same.from_rank = waiting.from_rank
            and same.to_rank = waiting.to_rank
    )
),

both_sides as (
    select *, 'waiting' as role from waiting
    union all by name
    select * from others
)

select
    dump_set || '|' || stop || '|' || group_name || '|' || from_rank || '->' || to_rank as hang_key,
    dump_set || '|' || stop as gang_key,
    * exclude (stop, peer, from_rank, to_rank),
    'send ' || from_rank || '->' || to_rank as operation,
    null::varchar as signature
from both_sides
