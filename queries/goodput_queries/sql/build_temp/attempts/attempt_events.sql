-- The events of this build with their attempt; excludes events of unmatched lives.
-- grain: event_id
-- skip_if_empty: temp.int_attempts
-- is_authoritative: false for a step or phase that a stronger source reports: one source counts for steps, and for each
--  kind of phase, from its first to its last step or phase; weaker sources count where it has none
with lives as (
    select lives.* exclude (begin_ms, has_failed), attempts.attempt_key, attempts.start_ms, attempts.end_ms
    from temp.int_attempts as attempts
    inner join intermediate.int_attempt_lives as lives using (job_run_key, life)
),

events as (
    select
        lives.attempt_key,
        lives.start_ms as attempt_start_ms,
        lives.end_ms as attempt_end_ms,
        {place: event_source_place(events.source), source: events.source} as reporter,
        events.event in ('step', 'step.start') or events.phase is not null as is_work,
        events.* exclude (cluster, run_id, attempt, local_rank, load_sequence)
    from temp.job_events as events
    inner join lives
        on events.cluster = lives.cluster
        and events.run_id = lives.run_id
        and events.attempt = lives.attempt
        and events.end_ms >= lives.from_ms
        and events.end_ms < lives.until_ms
),

reporters as (
    select
        attempt_key,
        reporter,
        min(start_ms) as first_ms,
        max(end_ms) as last_ms,
        min(step) filter (where event = 'step') as first_step,
        max(step) filter (where event = 'step') as last_step,
        list(distinct coalesce(phase, 'step')) as kinds
    from events
    where is_work
    group by attempt_key, reporter
),

shared as (
    select attempt_key from reporters group by attempt_key having count(*) > 1
),

-- a step that was only begun does not count: another source may report its end
numbered as (
    select distinct events.attempt_key, events.reporter, events.step, coalesce(events.phase, 'step') as kind
    from events
    semi join shared using (attempt_key)
    where events.is_work and events.step is not null and events.event != 'step.start'
),

silent as (
    select events.event_id
    from events
    semi join shared using (attempt_key)
    inner join reporters as stronger
        on events.attempt_key = stronger.attempt_key
        and stronger.reporter < events.reporter
        and list_contains(stronger.kinds, coalesce(events.phase, 'step'))
        and (
            (events.end_ms > stronger.first_ms and events.start_ms < stronger.last_ms)
            -- the same step, printed a moment later
            or (
                events.end_ms between stronger.first_ms - 1000 and stronger.last_ms + 1000
                and events.step between stronger.first_step and stronger.last_step
            )
        )
    where events.is_work
    union
    -- however far away: a clock that is off makes no second step of one number
    select events.event_id
    from events
    semi join shared using (attempt_key)
    inner join numbered as stronger
        on events.attempt_key = stronger.attempt_key
        and stronger.reporter < events.reporter
        and events.step = stronger.step
        and coalesce(events.phase, 'step') = stronger.kind
    where events.is_work
)

select events.* exclude (reporter, is_work), silent.event_id is null as is_authoritative
from events
left join silent using (event_id)
