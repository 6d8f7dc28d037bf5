-- The events of the runs in this build that carry no attempt number, with an inferred one.
-- grain: event_id
-- skip_if_empty: temp.dirty_run_ids where exists (from raw.job_events where attempt is null and ts >= from_ms(build_events_from_ms()))
-- attempt: that of the numbered events around it; where there are none, counted within the job run nearest in time by the
--  rank's starts: a `job.start`, or a step number that does not increase, unless it is the one that was missing: the clock
--  was set back. A rank that reports no `job.start` lives as long as the gang.
with unnumbered as (
    select
        events.*,
        job_runs.start_ms as job_run_start_ms,
        -- events after the hold may prove work inside it, but start no attempt
        coalesce(events.end_ms >= job_runs.end_ms, false) as is_late
    from (
        select *
        from staging.stg_job_events
        semi join temp.dirty_run_ids using (cluster, run_id)
        -- zones are known for it: what came before is not read
        where attempt is null and ts >= from_ms(build_events_from_ms())
    ) as events
    left join temp.named_job_runs as job_runs
        on events.cluster = job_runs.cluster
        and events.run_id = job_runs.run_id
        and is_event_near_hold(
            job_runs.is_id, job_runs.nodes, events.host,
            events.start_ms, events.end_ms, job_runs.start_ms, job_runs.end_ms
        )
    -- the one nearest in time; at a border a start belongs to the later one, all else to the one before
    qualify row_number() over (
        partition by events.event_id
        order by
            job_runs.is_id desc nulls last,
            event_off_hold_ms(events.event, events.start_ms, events.end_ms, job_runs.start_ms, job_runs.end_ms),
            case when events.event = 'job.start' then -job_runs.start_ms else job_runs.start_ms end,
            job_runs.job_run_key
    ) = 1
),

-- ... and in it the number of starts of the rank so far. Several sources may report one start: of starts without a
-- step between them the number counts that the source with most starts reports
starts_met as (
    select
        *,
        event = 'job.start' and not is_late and coalesce(
            max(ts) filter (where event = 'step') over earlier
            >= max(ts) filter (where event = 'job.start') over earlier,
            max(ts) filter (where event = 'job.start') over earlier is null
        ) as is_after_steps
    from unnumbered
    window earlier as (
        partition by cluster, run_id, job_run_start_ms, rank order by ts, event_place(event), step, source, event_id
        rows between unbounded preceding and 1 preceding
    )
),

starts_grouped as (
    select
        *,
        count_if(is_after_steps) over (
            partition by cluster, run_id, job_run_start_ms, rank order by ts, event_place(event), step, source, event_id
            rows between unbounded preceding and current row
        ) as start_group
    from starts_met
),

starts_of_source as (
    select
        *,
        case when event = 'job.start' and not is_late then count_if(event = 'job.start' and not is_late) over (
            partition by cluster, run_id, job_run_start_ms, rank, start_group, source order by ts, event_place(event), step, source, event_id
            rows between unbounded preceding and current row
        ) end as own_starts
    from starts_grouped
),

starts_of_rank as (
    select
        *,
        coalesce(own_starts > coalesce(max(own_starts) over (
            partition by cluster, run_id, job_run_start_ms, rank, start_group order by ts, event_place(event), step, source, event_id
            rows between unbounded preceding and 1 preceding
        ), 0), false) as is_reported_start
    from starts_of_source
),

starts_numbered as (
    select
        * exclude (is_after_steps, start_group, own_starts),
        -- of several sources one alone determines where step numbers restart
        {place: event_source_place(source), source: source} = min({place: event_source_place(source), source: source})
            filter (where event = 'step') over (partition by cluster, run_id, job_run_start_ms) as is_strongest,
        count_if(is_reported_start) over (
            partition by cluster, run_id, job_run_start_ms, rank order by ts, event_place(event), step, source, event_id
            rows between unbounded preceding and current row
        ) as starts
    from starts_of_rank
),

steps_met as (
    select
        *,
        coalesce(event = 'step' and not is_late and is_strongest and step <= lag(step) over (
            partition by cluster, run_id, job_run_start_ms, rank, event, starts, source
            order by ts, step, event_id
        ), false) as is_lower
    from starts_numbered
),

-- where a clock is set back by more than a step, numbers are mixed and none comes twice
mixed as (
    select event_id
    from (
        select
            event_id,
            is_lower
            and step = lag(step) over by_number + 1
            and ts >= lag(ts) over by_number
            and coalesce(step < lead(step) over by_number, true) as is_mixed
        from steps_met
        semi join (
            select distinct cluster, run_id, job_run_start_ms, rank, starts, source
            from steps_met
            where is_lower
        ) as lower_ones
            on steps_met.cluster = lower_ones.cluster
            and steps_met.run_id = lower_ones.run_id
            and steps_met.job_run_start_ms is not distinct from lower_ones.job_run_start_ms
            and steps_met.rank is not distinct from lower_ones.rank
            and steps_met.starts = lower_ones.starts
            and steps_met.source = lower_ones.source
        where event = 'step'
        window by_number as (
            partition by cluster, run_id, job_run_start_ms, rank, starts, source order by step, ts, event_id
        )
    )
    where is_mixed
),

starts_marked as (
    select steps_met.* exclude (is_lower), is_reported_start or (is_lower and mixed.event_id is null) as is_start
    from steps_met
    left join mixed using (event_id)
),

starts_counted as (
    select
        *,
        count_if(is_start) over (
            partition by cluster, run_id, job_run_start_ms, rank order by ts, event_place(event), step, source, event_id
            rows between unbounded preceding and current row
        ) as starts_so_far,
        max(starts) over (partition by cluster, run_id, job_run_start_ms, rank) = 0 as is_silent
    from starts_marked
),

-- steps before the first start that a rank reports are a life, too
lives_counted as (
    select
        *,
        starts_so_far + cast(
            bool_or(event = 'step' and starts_so_far = 0)
                over (partition by cluster, run_id, job_run_start_ms, rank) as integer
        ) as life
    from starts_counted
),

gang_lives as (
    select cluster, run_id, coalesce(job_run_start_ms, -1) as job_run_start_ms, life, min(ts) as ts
    from lives_counted
    where event = 'job.start' and not is_late
    group by all
),

attempts_inferred as (
    select
        events.* exclude (
            attempt, is_start, is_reported_start, starts, starts_so_far, is_silent, life, job_run_start_ms, is_late, is_strongest
        ),
        -- any number that grows from job run to job run and from start to start will do
        cast(
            (
                dense_rank() over (
                    partition by events.cluster, events.run_id
                    order by events.job_run_start_ms nulls first
                ) - 1
            ) * 10000 + greatest(events.life - 1, gang.life - 1, 0) as integer
        ) as attempt,
        events.job_run_start_ms
    from lives_counted as events
    asof left join gang_lives as gang
        on events.cluster = gang.cluster
        and events.run_id = gang.run_id
        and coalesce(events.job_run_start_ms, -1) = gang.job_run_start_ms
        and events.is_silent
        and events.ts >= gang.ts
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
        semi join unnumbered using (cluster, run_id)
        group by all
    )
    group by cluster, run_id, job_run_start_ms, first_ms
),

first_lives as (
    select cluster, run_id, job_run_start_ms, arg_min(attempt, first_ms) as attempt
    from numbered_lives
    group by cluster, run_id, job_run_start_ms
),

numbered_runs as (select distinct cluster, run_id, 100000000 as beyond from numbered_lives)

select
    events.* exclude (attempt, job_run_start_ms),
    coalesce(
        begun.attempt,
        first_lives.attempt,
        case when before.last_ms >= events.start_ms then before.attempt end,
        -- a life that the other source does not report
        events.attempt + coalesce(numbered_runs.beyond, 0)
    ) as attempt
from attempts_inferred as events
left join numbered_runs using (cluster, run_id)
asof left join numbered_lives as begun
    on events.cluster = begun.cluster
    and events.run_id = begun.run_id
    and coalesce(events.job_run_start_ms, -1) = begun.job_run_start_ms
    and events.end_ms >= begun.first_ms
left join first_lives
    on events.cluster = first_lives.cluster
    and events.run_id = first_lives.run_id
    and coalesce(events.job_run_start_ms, -1) = first_lives.job_run_start_ms
asof left join (select * exclude (job_run_start_ms) from numbered_lives) as before
    on events.cluster = before.cluster
    and events.run_id = before.run_id
    and events.end_ms >= before.first_ms
