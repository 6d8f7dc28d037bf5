-- Phases a job declared, for its gang: what any rank is blocked in blocks all, from the first rank's start
-- to the last one's end. Overlapping kinds are kept apart here; the innermost wins in the timeline.
-- grain: attempt_key, phase, start_ms
-- category: the ledger's word for the phase
-- is_open: no rank said that it ended; it ends with the next event of that rank
with attempts as (select * from intermediate.int_attempts where has_events),

events as (
    select
        attempts.attempt_key,
        attempts.start_ms as attempt_start_ms,
        attempts.end_ms as attempt_end_ms,
        events.rank,
        events.host,
        events.event,
        events.phase,
        events.start_ms,
        events.end_ms,
        lead(events.end_ms) over (
            -- what was written in the same moment came before the phase began
            partition by attempts.attempt_key, events.rank, events.host
            order by events.ts, events.event = 'phase.start'
        ) as next_ms,
        case when events.event in ('phase.start', 'phase.end') then
            lead(events.event) over marks
        end as next_mark,
        case when events.event in ('phase.start', 'phase.end') then
            lead(events.end_ms) over marks
        end as next_mark_ms
    from staging.stg_job_events as events
    inner join attempts
        on events.cluster = attempts.cluster
        and events.run_id = attempts.run_id
        and events.attempt = attempts.said_attempt
    window marks as (
        partition by
            attempts.attempt_key, events.rank, events.host, events.phase,
            events.event in ('phase.start', 'phase.end')
        order by events.ts
    )
),

spans as (
    select attempt_key, attempt_start_ms, attempt_end_ms, phase, start_ms, end_ms, false as is_open
    from events
    where event = 'phase' and phase is not null
    union all
    select
        attempt_key,
        attempt_start_ms,
        attempt_end_ms,
        phase,
        end_ms,
        case
            when next_mark = 'phase.end' then next_mark_ms
            else coalesce(next_ms, attempt_end_ms, end_ms)
        end,
        coalesce(next_mark <> 'phase.end', true)
    from events
    where event = 'phase.start' and phase is not null
),

cut as (
    select
        attempt_key,
        phase,
        greatest(start_ms, attempt_start_ms) as start_ms,
        least(end_ms, coalesce(attempt_end_ms, end_ms)) as end_ms,
        is_open
    from spans
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
