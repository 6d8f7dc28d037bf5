-- The events of the runs in this build that carry no attempt number, with an inferred one.
-- grain: event_id
-- skip_if_empty: temp.dirty_run_ids where exists (from raw.job_events where attempt is null and ts >= from_ms(build_events_from_ms()))
-- attempt: that of the numbered events around it; where there are none, counted within the job run nearest in time by the
--  rank's starts: a `job.start`, or a step number that does not increase, unless it is the one that was missing: the clock
--  was set back. A rank that reports no `job.start` lives as long as the gang.
-- Rows are few columns wide until the last join: a log has millions of steps, and few of them start anything.
with job_runs as (
    select *, count(*) over (partition by cluster, run_id) > 1 as has_rivals from temp.named_job_runs
),

candidates as (
    select
        events.event_id,
        events.cluster,
        events.run_id,
        coalesce(events.rank, -1) as rank,
        events.event,
        events.step,
        events.source,
        events.ts,
        events.start_ms,
        events.end_ms,
        job_runs.job_run_key,
        job_runs.is_id,
        job_runs.start_ms as hold_start_ms,
        job_runs.end_ms as hold_end_ms,
        coalesce(job_runs.has_rivals, false) as has_rivals
    from (
        select *
        from staging.stg_job_events
        semi join temp.dirty_run_ids using (cluster, run_id)
        -- zones are known for it: what came before is not read
        where attempt is null and ts >= from_ms(build_events_from_ms())
    ) as events
    left join job_runs
        on events.cluster = job_runs.cluster
        and events.run_id = job_runs.run_id
        and is_event_near_hold(
            job_runs.is_id, job_runs.nodes, events.host,
            events.start_ms, events.end_ms, job_runs.start_ms, job_runs.end_ms
        )
),

-- the one nearest in time; at a border a start belongs to the later one, all else to the one before
placed as (
    select
        * exclude (job_run_key, is_id, hold_start_ms, hold_end_ms, has_rivals),
        coalesce(hold_start_ms, -1) as job_run_start_ms,
        -- events after the hold may prove work inside it, but start no attempt
        coalesce(end_ms >= hold_end_ms, false) as is_late
    from (
        from candidates where not has_rivals
        union all
        from candidates
        where has_rivals
        qualify row_number() over (
            partition by event_id
            order by
                is_id desc,
                event_off_hold_ms(event, start_ms, end_ms, hold_start_ms, hold_end_ms),
                case when event = 'job.start' then -hold_start_ms else hold_start_ms end,
                job_run_key
        ) = 1
    )
),

-- line: one rank of one job run, as a number
lines as (
    select
        row_number() over () as line,
        dense_rank() over (partition by cluster, run_id order by job_run_start_ms) - 1 as place,
        *
    from (select distinct cluster, run_id, job_run_start_ms, rank from placed)
),

in_order as (
    select
        placed.event_id,
        lines.line,
        row_number() over (
            partition by lines.line
            order by placed.ts, event_place(placed.event), placed.step, placed.source, placed.event_id
        ) as n,
        placed.event,
        placed.step,
        placed.source,
        placed.ts,
        placed.start_ms,
        placed.end_ms,
        placed.is_late
    from placed
    inner join lines using (cluster, run_id, job_run_start_ms, rank)
),

-- the starts of a rank. Several sources may report one start: of starts without a step between them the number counts
-- that the source with most starts reports
restarted as (
    select line from in_order where event = 'job.start' group by line having count(*) > 1
),

starts_met as (
    select line, n, source, true as is_after_steps, is_late
    from in_order
    anti join restarted using (line)
    where event = 'job.start'
    union all
    select
        line,
        n,
        source,
        coalesce(
            max(ts) filter (where event = 'step') over earlier
            >= max(ts) filter (where event = 'job.start') over earlier,
            max(ts) filter (where event = 'job.start') over earlier is null
        ) as is_after_steps,
        is_late
    from (from in_order semi join restarted using (line) where event in ('step', 'job.start'))
    window earlier as (partition by line order by n rows between unbounded preceding and 1 preceding)
    qualify event = 'job.start'
),

starts_grouped as (
    select line, n, source, count_if(is_after_steps) over (partition by line order by n) as start_group
    from starts_met
    where not is_late
),

starts_of_source as (
    select
        line, n, start_group,
        row_number() over (partition by line, start_group, source order by n) as own_starts
    from starts_grouped
),

starts as (
    select line, n
    from starts_of_source
    qualify own_starts > coalesce(max(own_starts) over (
        partition by line, start_group order by n rows between unbounded preceding and 1 preceding
    ), 0)
),

-- of several sources one alone determines where step numbers restart
strongest as (
    select
        lines.cluster,
        lines.run_id,
        lines.job_run_start_ms,
        arg_min(events.source, (event_source_place(events.source), events.source)) as source
    from (select distinct line, source from in_order where event = 'step') as events
    inner join lines using (line)
    group by lines.cluster, lines.run_id, lines.job_run_start_ms
),

numbering as (
    select lines.line, strongest.source
    from lines
    inner join strongest using (cluster, run_id, job_run_start_ms)
),

started as (
    select
        events.*,
        case
            when lives.line is not null
                then count_if(starts.n is not null) over (partition by events.line order by events.n)
            else 0
        end as starts
    from in_order as events
    left join (select distinct line from starts) as lives using (line)
    left join starts using (line, n)
),

steps_met as (
    select
        event_id, line, n, source, starts, step, ts, is_late,
        step <= lag(step) over (partition by line, starts order by ts, step, event_id) as is_lower
    from started
    inner join numbering using (line, source)
    where event = 'step'
),

-- where a clock is set back by more than a step, numbers are mixed and none comes twice
mixed as (
    select
        line,
        n,
        is_lower
        and step = lag(step) over by_number + 1
        and ts >= lag(ts) over by_number
        and coalesce(step < lead(step) over by_number, true) as is_mixed
    from (from steps_met semi join (from steps_met where is_lower and not is_late) using (line, starts))
    window by_number as (partition by line, starts order by step, ts, event_id)
    qualify is_lower and not is_late
),

marks as (
    from starts
    union all
    select line, n from mixed where not coalesce(is_mixed, false)
),

-- steps before the first start that a rank reports are a life, too
lives as (
    select
        events.*,
        events.starts_so_far
        + cast(bool_or(events.event = 'step' and events.starts_so_far = 0) over (partition by events.line) as integer)
            as life
    from (
        select started.*, count_if(marks.n is not null) over (partition by started.line order by started.n) as starts_so_far
        from started
        left join marks using (line, n)
    ) as events
),

gang_lives as (
    select lines.cluster, lines.run_id, lines.job_run_start_ms, lives.life, min(lives.ts) as ts
    from lives
    inner join lines using (line)
    where lives.event = 'job.start' and not lives.is_late
    group by all
),

-- ranks that report no start, of gangs in which another does
silent_lives as (
    select events.event_id, gang.life
    from (
        select lives.event_id, lives.ts, lines.*
        from lives
        inner join lines using (line)
        where lives.line not in (select line from starts)
    ) as events
    asof join gang_lives as gang
        on events.cluster = gang.cluster
        and events.run_id = gang.run_id
        and events.job_run_start_ms = gang.job_run_start_ms
        and events.ts >= gang.ts
),

counted as (
    select
        lives.event_id,
        lives.line,
        lives.start_ms,
        lives.end_ms,
        -- any number that grows from job run to job run and from start to start will do
        cast(
            lines.place * 10000 + greatest(lives.life - 1, silent_lives.life - 1, 0) as integer
        ) as attempt
    from lives
    inner join lines using (line)
    left join silent_lives using (event_id)
),

-- another source may number the attempts: then its numbers hold, of the attempt that had begun last in the job run
numbered_lives as (
    select cluster, run_id, job_run_start_ms, first_ms, max(attempt) as attempt, max(last_ms) as last_ms
    from (
        select
            cluster,
            run_id,
            coalesce(job_run_start_ms, -1) as job_run_start_ms,
            attempt,
            min(start_ms) as first_ms,
            max(end_ms) as last_ms
        from temp.numbered_events
        semi join lines using (cluster, run_id)
        group by all
    )
    group by cluster, run_id, job_run_start_ms, first_ms
),

first_lives as (
    select cluster, run_id, job_run_start_ms, arg_min(attempt, first_ms) as attempt
    from numbered_lives
    group by cluster, run_id, job_run_start_ms
),

beside_numbers as (
    select counted.*, lines.cluster, lines.run_id, lines.job_run_start_ms
    from counted
    inner join lines using (line)
    where (lines.cluster, lines.run_id) in (select (cluster, run_id) from numbered_lives)
),

numbered as (
    select
        events.event_id,
        coalesce(
            begun.attempt,
            first_lives.attempt,
            case when before.last_ms >= events.start_ms then before.attempt end,
            -- a life that the other source does not report
            events.attempt + 1000000000
        ) as attempt
    from beside_numbers as events
    asof left join numbered_lives as begun
        on events.cluster = begun.cluster
        and events.run_id = begun.run_id
        and events.job_run_start_ms = begun.job_run_start_ms
        and events.end_ms >= begun.first_ms
    left join first_lives
        on events.cluster = first_lives.cluster
        and events.run_id = first_lives.run_id
        and events.job_run_start_ms = first_lives.job_run_start_ms
    asof left join (select * exclude (job_run_start_ms) from numbered_lives) as before
        on events.cluster = before.cluster
        and events.run_id = before.run_id
        and events.end_ms >= before.first_ms
)

select events.* exclude (attempt), coalesce(numbered.attempt, counted.attempt) as attempt
from staging.stg_job_events as events
inner join counted using (event_id)
left join numbered using (event_id)
where events.attempt is null and events.ts >= from_ms(build_events_from_ms())
