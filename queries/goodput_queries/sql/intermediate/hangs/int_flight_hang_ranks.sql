-- Collectives that ranks stood in when their Flight Recorders were dumped, and what each rank of the group did:
-- the first operation that a rank has enqueued and not completed, if it is older than its own timeout or than
-- hang_min_ms (a dump of a healthy job has operations in flight too).
-- grain: hang_key, rank
-- gang_key: the processes that dumped together
-- role: missing (has not launched it), differs (launched another operation in its place), no_dump (said nothing),
--  not_started (its GPU has not begun it, others' have), waiting, done
with groups as (
    select
        *,
        case when coalesce(last_enqueued, -1) > coalesce(last_completed, 0)
            then coalesce(last_completed, 0) + 1
        end as open_sequence
    from staging.stg_flight_groups
),

records as (
    select * from staging.stg_flight_records where not is_p2p
),

hangs as (
    select
        groups.dump_set,
        groups.stop,
        groups.group_name,
        min(groups.open_sequence) as sequence_number,
        min(records.created_ms) as since_ms,
        max(groups.stop_last_ms) as last_ms
    from groups
    inner join records
        on groups.dump_set = records.dump_set
        and groups.rank = records.rank
        and groups.group_name = records.group_name
        and groups.open_sequence = records.sequence_number
    where
        records.state <> 'completed'
        and groups.stop_last_ms - records.created_ms
        >= least(coalesce(nullif(records.timeout_ms, 0), threshold('hang_min_ms')), threshold('hang_min_ms'))
    group by groups.dump_set, groups.stop, groups.group_name
),

members as (
    select dump_set, stop, group_name, unnest(ranks) as rank from groups
    union
    select dump_set, stop, group_name, rank from groups
),

joined as (
    select
        hangs.dump_set || '|' || hangs.stop || '|' || hangs.group_name as hang_key,
        hangs.dump_set || '|' || hangs.stop as gang_key,
        hangs.*,
        groups.cluster,
        groups.group_description,
        members.rank,
        groups.rank is not null as has_dump,
        groups.last_enqueued,
        groups.last_completed,
        records.operation,
        records.state,
        records.message_bytes,
        -- sizes differ by right in gathers, scatters and all-to-all
        records.operation || coalesce(' of ' || records.input_dtype, '')
        || case when regexp_matches(records.operation, '^(all_?reduce|broadcast)')
            then coalesce(' x ' || records.input_elements, '') else ''
        end as signature
    from hangs
    inner join members using (dump_set, stop, group_name)
    left join groups
        on hangs.dump_set = groups.dump_set
        and hangs.stop = groups.stop
        and hangs.group_name = groups.group_name
        and members.rank = groups.rank
    left join records
        on hangs.dump_set = records.dump_set
        and hangs.group_name = records.group_name
        and hangs.sequence_number = records.sequence_number
        and members.rank = records.rank
        and groups.last_enqueued >= hangs.sequence_number
        and records.created_ms <= hangs.last_ms
    qualify row_number() over (
        partition by hang_key, members.rank order by records.created_ms desc nulls last, records.record_id
    ) = 1
),

common as (
    select
        hang_key,
        any_value(cluster) as cluster,
        any_value(group_description) as group_description,
        mode(signature) as signature,
        mode(operation) as operation,
        max(message_bytes) as message_bytes,
        bool_or(state = 'started') as is_started_somewhere
    from joined
    group by hang_key
)

select
    joined.hang_key,
    joined.gang_key,
    common.* exclude (hang_key, signature, is_started_somewhere),
    joined.dump_set,
    joined.group_name,
    joined.sequence_number,
    joined.rank,
    case
        when not joined.has_dump then 'no_dump'
        when coalesce(joined.last_enqueued, 0) < joined.sequence_number then 'missing'
        when joined.last_completed >= joined.sequence_number then 'done'
        when joined.signature <> common.signature then 'differs'
        when joined.state = 'scheduled' and common.is_started_somewhere then 'not_started'
        else 'waiting'
    end as role,
    joined.signature,
    joined.since_ms,
    joined.last_ms
from joined
inner join common using (hang_key)
