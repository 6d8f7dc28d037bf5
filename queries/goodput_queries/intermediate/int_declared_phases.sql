-- Phases a job declared, for its gang: what any rank is blocked in blocks all, from the first rank's start
-- to the last one's end. Overlapping kinds are kept apart here; the innermost wins in the timeline.
-- grain: attempt_key, phase, start_ms
-- category: the ledger's word for the phase
-- is_open: no rank said that it ended; it ends with the next event of that rank
with events as (
    select * from intermediate.int_attempt_events where phase is not null
),

marks as (
    select
        attempt_key,
        attempt_start_ms,
        attempt_end_ms,
        rank,
        host,
        event,
        phase,
        ts,
        end_ms,
        lead(event) over same_phase as next_mark,
        lead(end_ms) over same_phase as next_mark_ms
    from events
    where event in ('phase.start', 'phase.end')
    window same_phase as (partition by attempt_key, rank, host, phase order by ts)
),

unended as (
    select * from marks where event = 'phase.start' and coalesce(next_mark <> 'phase.end', true)
),

-- only ranks with such a phase are looked through for the event that followed
following as (
    select attempt_key, rank, host, ts, end_ms
    from intermediate.int_attempt_events
    semi join unended using (attempt_key)
),

ended_by_next as (
    select
        unended.attempt_key,
        unended.attempt_start_ms,
        unended.attempt_end_ms,
        unended.phase,
        unended.end_ms as start_ms,
        coalesce(following.end_ms, unended.attempt_end_ms, unended.end_ms) as end_ms
    from unended
    asof left join following
        on unended.attempt_key = following.attempt_key
        and coalesce(unended.rank, -1) = coalesce(following.rank, -1)
        and coalesce(unended.host, '') = coalesce(following.host, '')
        and unended.ts < following.ts
),

spans as (
    select attempt_key, attempt_start_ms, attempt_end_ms, phase, start_ms, end_ms, false as is_open
    from events
    where event = 'phase'
    union all
    select attempt_key, attempt_start_ms, attempt_end_ms, phase, end_ms, next_mark_ms, false
    from marks
    where event = 'phase.start' and next_mark = 'phase.end'
    union all
    select attempt_key, attempt_start_ms, attempt_end_ms, phase, start_ms, end_ms, true
    from ended_by_next
),

-- ranks tell the same span to the millisecond: one row each, or two windows may order them differently
cut as (
    select
        attempt_key,
        phase,
        greatest(start_ms, attempt_start_ms) as start_ms,
        least(end_ms, coalesce(attempt_end_ms, end_ms)) as end_ms,
        bool_or(is_open) as is_open
    from spans
    group by all
),

marked as (
    select
        *,
        coalesce(start_ms > max(end_ms) over (
            partition by attempt_key, phase order by start_ms, end_ms
            rows between unbounded preceding and 1 preceding
        ), true) as is_new
    from cut
    where end_ms > start_ms
),

occurrences as (
    select
        *,
        sum(is_new::integer) over (
            partition by attempt_key, phase order by start_ms, end_ms
            rows between unbounded preceding and current row
        ) as occurrence
    from marked
),

declared as (
    select
        attempt_key,
        phase,
        case phase
            when 'init' then 'startup'
            when 'compile' then 'startup'
            when 'restore' then 'restore'
            when 'ckpt_save' then 'checkpoint_save'
            when 'data_wait' then 'data_stall'
            else 'other_declared'
        end as category,
        min(start_ms) as start_ms,
        max(end_ms) as end_ms,
        bool_or(is_open) as is_open
    from occurrences
    group by attempt_key, phase, occurrence
),

-- a phase that nobody ended and whose GPUs have all gone quiet until its end is a hang from then on
quiet as (
    select
        declared.attempt_key,
        declared.phase,
        declared.start_ms,
        greatest(max(islands.start_ms), declared.start_ms) as quiet_ms,
        count(distinct islands.gpu_uuid) as quiet_gpus,
        count(distinct holds.gpu_uuid) as gpus
    from declared
    inner join intermediate.int_attempts as all_attempts using (attempt_key)
    inner join intermediate.int_holds as holds using (job_run_key)
    left join intermediate.int_idle_islands as islands
        on holds.gpu_uuid = islands.gpu_uuid
        and holds.gpu_instance = islands.gpu_instance
        and islands.start_ms < declared.end_ms
        -- readings end up to one interval before the phase does
        and islands.end_ms >= declared.end_ms - 60000
    where declared.is_open
    group by declared.attempt_key, declared.phase, declared.start_ms, declared.end_ms
    having quiet_gpus = gpus and declared.end_ms - quiet_ms >= threshold('idle_min_ms')
)

select
    declared.attempt_key,
    declared.phase,
    declared.category,
    declared.start_ms,
    coalesce(quiet.quiet_ms, declared.end_ms) as end_ms,
    declared.is_open
from declared
left join quiet using (attempt_key, phase, start_ms)
where coalesce(quiet.quiet_ms, declared.end_ms) > declared.start_ms
union all
select
    declared.attempt_key,
    declared.phase || ' never ended',
    'fault_stall',
    quiet.quiet_ms,
    declared.end_ms,
    true
from declared
inner join quiet using (attempt_key, phase, start_ms)
