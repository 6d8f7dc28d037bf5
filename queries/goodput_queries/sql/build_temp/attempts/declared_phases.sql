-- Phases that a job declared, for its gang: a phase that blocks any rank blocks all, from the first rank's start to the
-- last one's end. Overlapping kinds are separate rows; the innermost wins in the timeline.
-- grain: attempt_key, phase, start_ms
-- skip_if_empty: temp.attempt_events where phase is not null
-- category: the ledger's word for the phase
-- reported_start_ms: before the attempt where the job said so: of two that overlap, the one that began later counts
-- is_open: nobody reported its end, nothing of that rank and no step of the gang follows: it lasts to the end of the attempt
-- end_ms: 9223372036854775807: the attempt still runs
with events as (
    select * from temp.attempt_events where phase is not null and is_authoritative
),

-- both at one moment are a phase of no length, or one that goes on: left out
turns as (
    select *
    from events
    where event in ('phase.start', 'phase.end')
    window at_once as (partition by attempt_key, rank, host, phase, ts)
    qualify min(event) over at_once = max(event) over at_once
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
        event_id,
        source,
        end_ms,
        lead(event) over same_phase as next_mark,
        lead(end_ms) over same_phase as next_mark_ms
    from turns
    window same_phase as (partition by attempt_key, rank, host, phase order by ts, event_id)
),

-- saves during which a step of the same rank and source ended: how long they blocked is not known
asynchronous as (
    select distinct saves.event_id
    from (
        select *, unnest(range(end_ms // ten_minutes_ms(), next_mark_ms // ten_minutes_ms() + 1)) as cell
        from marks
        where event = 'phase.start' and next_mark = 'phase.end' and phase = 'ckpt_save'
    ) as saves
    inner join temp.attempt_events as steps
        on saves.attempt_key = steps.attempt_key
        and saves.source = steps.source
        and coalesce(saves.rank, -1) = coalesce(steps.rank, -1)
        and coalesce(saves.host, '') = coalesce(steps.host, '')
        and saves.cell = steps.end_ms // ten_minutes_ms()
        and steps.end_ms > saves.end_ms
        and steps.end_ms < saves.next_mark_ms
    where steps.event = 'step'
),

unended as (
    select * from marks where event = 'phase.start' and coalesce(next_mark <> 'phase.end', true)
),

-- a gang that begins a step has left the phase, also where a rank reports nothing more; without a length a step began when the
-- one before it was done, or later
stepping as (
    select attempt_key, start_ms
    from temp.attempt_events
    semi join unended using (attempt_key)
    where event = 'step.start' or event = 'step' and start_ms < end_ms
    union all
    select attempt_key, lag(min(end_ms)) over (partition by attempt_key order by step) as start_ms
    from temp.attempt_events
    semi join unended using (attempt_key)
    where event = 'step'
    group by attempt_key, step
    having not bool_or(start_ms < end_ms)
),

-- only ranks with such a phase are looked through for the event that followed
following as (
    select attempt_key, rank, host, ts, end_ms
    from temp.attempt_events
    semi join unended using (attempt_key)
),

ended_by_next as (
    select
        unended.attempt_key,
        unended.attempt_start_ms,
        unended.attempt_end_ms,
        unended.phase,
        unended.end_ms as start_ms,
        coalesce(following.end_ms, stepping.start_ms, unended.attempt_end_ms, forever_ms()) as end_ms,
        following.end_ms is null and stepping.start_ms is null as is_open
    from unended
    asof left join following
        on unended.attempt_key = following.attempt_key
        and coalesce(unended.rank, -1) = coalesce(following.rank, -1)
        and coalesce(unended.host, '') = coalesce(following.host, '')
        and unended.ts < following.ts
    asof left join stepping on unended.attempt_key = stepping.attempt_key and unended.end_ms < stepping.start_ms
    where
        following.end_ms is not null
        -- in a run that no scheduler knows, silence ends a phase as it ends steps: with the last event
        or unended.attempt_key not in (select attempt_key from temp.int_attempts where is_stalled)
),

spans as (
    select attempt_key, attempt_start_ms, attempt_end_ms, phase, start_ms, end_ms, false as is_open
    from events
    where event = 'phase'
    union all
    select attempt_key, attempt_start_ms, attempt_end_ms, phase, end_ms, next_mark_ms, false
    from marks
    left join asynchronous using (event_id)
    where event = 'phase.start' and next_mark = 'phase.end' and asynchronous.event_id is null
    union all
    select attempt_key, attempt_start_ms, attempt_end_ms, phase, start_ms, end_ms, is_open
    from ended_by_next
),

-- ranks report the same interval to the millisecond: one row each, or two windows may order them differently
cut as (
    select
        attempt_key,
        phase,
        greatest(start_ms, attempt_start_ms) as start_ms,
        least(end_ms, coalesce(attempt_end_ms, end_ms)) as end_ms,
        min(start_ms) as reported_start_ms,
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
            partition by attempt_key, phase order by start_ms, end_ms rows unbounded preceding
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
            when 'gang_wait' then 'gang_wait'
            else 'other_declared'
        end as category,
        min(start_ms) as start_ms,
        max(end_ms) as end_ms,
        min(reported_start_ms) as reported_start_ms,
        bool_or(is_open) as is_open
    from occurrences
    group by attempt_key, phase, occurrence
),

-- a phase that the end of its attempt ended, and whose GPUs have all gone quiet until then, is a hang from then on
watched as (
    select
        declared.attempt_key,
        declared.phase,
        declared.start_ms,
        declared.end_ms,
        holds.gpu_uuid,
        holds.gpu_instance,
        unnest(range(declared.start_ms // one_hour_ms(), declared.end_ms // one_hour_ms() + 1)) * one_hour_ms() as hour_ms
    from declared
    inner join temp.int_attempts as attempts using (attempt_key)
    inner join intermediate.int_holds as holds using (job_run_key)
    where declared.is_open and attempts.end_ms is not null
),

seen as (
    select
        watched.* exclude (hour_ms),
        activity.is_active,
        activity.start_ms as seen_from_ms,
        activity.end_ms as seen_to_ms,
        activity.start_ms - lag(activity.end_ms) over (
            partition by watched.attempt_key, watched.phase, watched.start_ms, watched.gpu_uuid, watched.gpu_instance
            order by activity.start_ms
        ) > threshold('gap_hole_reach') * activity.interval_ms as is_after_hole
    from watched
    left join intermediate.int_gpu_activity as activity
        on watched.gpu_uuid = activity.gpu_uuid
        and watched.gpu_instance = activity.gpu_instance
        and watched.hour_ms = activity.hour_ms
        and activity.start_ms < watched.end_ms
        -- readings end up to one interval before the phase does
        and not (activity.is_active and activity.first_reading_ms >= watched.end_ms - 60000)
),

seen_by_gpu as (
    select
        attempt_key,
        phase,
        start_ms,
        end_ms,
        gpu_uuid,
        greatest(
            start_ms,
            max(case when is_active then seen_to_ms when is_after_hole then seen_from_ms end)
        ) as quiet_ms,
        coalesce(max(seen_to_ms) filter (where not is_active) >= end_ms - 60000, false) as is_quiet
    from seen
    group by attempt_key, phase, start_ms, end_ms, gpu_uuid
),

quiet as (
    select attempt_key, phase, start_ms, max(quiet_ms) as quiet_ms
    from seen_by_gpu
    group by attempt_key, phase, start_ms, end_ms
    having bool_and(is_quiet) and end_ms - max(quiet_ms) >= threshold('idle_min_ms')
)

select
    declared.attempt_key,
    declared.phase,
    declared.category,
    declared.start_ms,
    coalesce(quiet.quiet_ms, declared.end_ms) as end_ms,
    declared.reported_start_ms,
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
    quiet.quiet_ms,
    true
from declared
inner join quiet using (attempt_key, phase, start_ms)
