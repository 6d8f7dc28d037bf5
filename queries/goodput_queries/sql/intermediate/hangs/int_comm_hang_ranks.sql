-- Communicators in which a rank's count of launched operations stayed behind the others' for hang_min_ms and
-- never caught up, by NCCL RAS. Counts that differ in one answer are ranks at work; a count that stands still
-- is a rank that does not come.
-- grain: hang_key, rank
-- role: missing (has launched fewer), waiting (has launched more)
-- launched: by the ranks that are behind
-- rank: in the communicator; null: RAS said only how many
with answers as (
    select
        comm_id,
        operation,
        ts_ms,
        any_value(cluster) as cluster,
        any_value(comm_ranks) as comm_ranks,
        min(launched) as behind,
        max(launched) as ahead,
        sum(rank_count) as ranks_seen
    from staging.stg_comm_counts
    group by comm_id, operation, ts_ms
),

standing as (
    select
        comm_id,
        operation,
        behind,
        any_value(cluster) as cluster,
        any_value(comm_ranks) as comm_ranks,
        min(ts_ms) filter (where ahead > behind) as since_ms,
        max(ts_ms) as last_ms,
        count(*) as answers
    from answers
    group by comm_id, operation, behind
),

hangs as (
    select
        standing.comm_id || '|' || standing.since_ms as hang_key,
        standing.*
    from standing
    where
        standing.last_ms - standing.since_ms >= threshold('hang_min_ms')
        and standing.answers > 1
        and not exists (
            select 1 from answers as later
            where
                later.comm_id = standing.comm_id
                and later.operation = standing.operation
                and later.ts_ms > standing.last_ms
                and later.behind > standing.behind
                and later.ranks_seen >= standing.comm_ranks
        )
    -- a rank that does not come is soon behind in other operations as well
    qualify row_number() over (partition by standing.comm_id order by since_ms, standing.operation) = 1
),

reported as (
    select
        hangs.hang_key,
        counts.launched > hangs.behind as is_ahead,
        counts.rank_count,
        counts.ranks,
        counts.ts_ms
    from hangs
    inner join staging.stg_comm_counts as counts
        on hangs.comm_id = counts.comm_id
        and hangs.operation = counts.operation
        and counts.ts_ms between hangs.since_ms and hangs.last_ms
),

-- the answer that names most ranks, which is any in JSON
named as (
    select
        hang_key,
        is_ahead,
        max(rank_count) as rank_count,
        max_by(ranks, coalesce(len(ranks), 0)) as ranks
    from (
        select hang_key, is_ahead, ts_ms, sum(rank_count) as rank_count, flatten(list(ranks)) as ranks
        from reported
        group by hang_key, is_ahead, ts_ms
    )
    group by hang_key, is_ahead
)

select
    hangs.* exclude (behind, answers),
    hangs.behind as launched,
    case when named.is_ahead then 'waiting' else 'missing' end as role,
    named.rank_count,
    unnest(coalesce(named.ranks, [null])) as rank
from hangs
inner join named using (hang_key)
