-- The events of the runs that this build looks at, with the attempt worked out where it was not said.
-- grain: event_id
-- attempt: as given, unless the number comes again in a later job run (a counter that each one begins anew); else
--  counted within its job run by the rank's starts: a `job.start`, or a step number that does not go on. A rank
--  that tells no `job.start` lives as long as the gang.
with job_events as (
    select events.*
    from staging.stg_job_events as events
    semi join temp.dirty_run_ids using (cluster, run_id)
    -- zones are known for it: what came before is not read
    where events.ts >= from_ms(build_events_from_ms())
),

job_runs as (
    select distinct names.cluster, names.run_id, names.nodes, names.start_ms, names.end_ms
    from (
        select cluster, unnest([job_id, job_id_raw, job_name]) as run_id, nodes, start_ms, end_ms
        from intermediate.int_job_runs
        where start_ms is not null
    ) as names
    semi join temp.dirty_run_ids using (cluster, run_id)
),

-- a job that does not number its attempts: its job run by time (a second of slack between clocks) ...
unnumbered as (
    select events.*, job_runs.start_ms as job_run_start_ms
    from (select * from job_events where attempt is null) as events
    left join job_runs
        on events.cluster = job_runs.cluster
        and events.run_id = job_runs.run_id
        and events.end_ms >= job_runs.start_ms - 1000
        and events.end_ms <= coalesce(job_runs.end_ms, 9223372036854770000) + 1000
        and (events.host is null or list_contains(job_runs.nodes, events.host))
    qualify row_number() over (
        partition by events.event_id order by job_runs.start_ms desc nulls last
    ) = 1
),

-- ... and in it the number of starts of the rank so far. Several sources may tell one start: of starts without a
-- step between them as many count as the source tells that tells most
starts_met as (
    select
        *,
        event = 'job.start' and coalesce(
            max(ts) filter (where event = 'step') over earlier
            >= max(ts) filter (where event = 'job.start') over earlier,
            max(ts) filter (where event = 'job.start') over earlier is null
        ) as is_after_steps
    from unnumbered
    window earlier as (
        partition by cluster, run_id, job_run_start_ms, rank order by ts, event, step
        rows between unbounded preceding and 1 preceding
    )
),

starts_grouped as (
    select
        *,
        count_if(is_after_steps) over (
            partition by cluster, run_id, job_run_start_ms, rank order by ts, event, step
            rows between unbounded preceding and current row
        ) as start_group
    from starts_met
),

starts_of_source as (
    select
        *,
        case when event = 'job.start' then count_if(event = 'job.start') over (
            partition by cluster, run_id, job_run_start_ms, rank, start_group, source order by ts, event, step
            rows between unbounded preceding and current row
        ) end as own_starts
    from starts_grouped
),

starts_told as (
    select
        *,
        coalesce(own_starts > coalesce(max(own_starts) over (
            partition by cluster, run_id, job_run_start_ms, rank, start_group order by ts, event, step
            rows between unbounded preceding and 1 preceding
        ), 0), false) as is_told_start
    from starts_of_source
),

told_starts as (
    select
        * exclude (is_after_steps, start_group, own_starts),
        count_if(is_told_start) over (
            partition by cluster, run_id, job_run_start_ms, rank order by ts, event, step
            rows between unbounded preceding and current row
        ) as starts
    from starts_told
),

starts_marked as (
    select
        *,
        is_told_start
        or (
            event = 'step' and step <= lag(step) over (
                partition by cluster, run_id, job_run_start_ms, rank, event, starts order by ts
            )
        ) as is_start
    from told_starts
),

starts_counted as (
    select
        *,
        count_if(is_start) over (
            partition by cluster, run_id, job_run_start_ms, rank order by ts, event, step
            rows between unbounded preceding and current row
        ) as starts_so_far,
        max(starts) over (partition by cluster, run_id, job_run_start_ms, rank) = 0 as is_silent
    from starts_marked
),

-- steps before the first start that a rank tells are a life, too
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
    where event = 'job.start'
    group by all
),

attempts_inferred as (
    select
        events.* exclude (
            attempt, is_start, is_told_start, starts, starts_so_far, is_silent, life, job_run_start_ms
        ),
        -- any number that grows from job run to job run and from start to start will do
        cast(
            (
                dense_rank() over (
                    partition by events.cluster, events.run_id
                    order by events.job_run_start_ms nulls first
                ) - 1
            ) * 10000 + greatest(events.life - 1, gang.life - 1, 0) as integer
        ) as attempt
    from lives_counted as events
    asof left join gang_lives as gang
        on events.cluster = gang.cluster
        and events.run_id = gang.run_id
        and coalesce(events.job_run_start_ms, -1) = gang.job_run_start_ms
        and events.is_silent
        and events.ts >= gang.ts
),

numbered as (select * from job_events where attempt is not null),

reused as (
    select distinct cluster, run_id
    from (
        select
            lives.cluster,
            lives.run_id,
            job_runs.start_ms,
            lag(job_runs.end_ms) over (
                partition by lives.cluster, lives.run_id, lives.attempt order by job_runs.start_ms
            ) as before_end_ms
        from (
            select cluster, run_id, attempt, min(start_ms) as first_ms, max(end_ms) as last_ms
            from numbered
            group by cluster, run_id, attempt
        ) as lives
        inner join job_runs
            on lives.cluster = job_runs.cluster
            and lives.run_id = job_runs.run_id
            and lives.first_ms < coalesce(job_runs.end_ms, 9223372036854770000)
            and lives.last_ms > job_runs.start_ms + 1000
    )
    where before_end_ms <= start_ms
),

renumbered as (
    select
        * exclude (attempt, job_run_start_ms),
        cast(
            (dense_rank() over (partition by cluster, run_id order by job_run_start_ms nulls first) - 1)
            * 10000 + least(attempt, 9999) as integer
        ) as attempt
    from (
        select events.*, job_runs.start_ms as job_run_start_ms
        from (select * from numbered semi join reused using (cluster, run_id)) as events
        left join job_runs
            on events.cluster = job_runs.cluster
            and events.run_id = job_runs.run_id
            and events.end_ms >= job_runs.start_ms - 1000
            and (events.host is null or list_contains(job_runs.nodes, events.host))
        -- inside one, if any; else the one that had begun last, give or take a second between clocks
        qualify row_number() over (
            partition by events.event_id
            order by
                (
                    events.start_ms >= job_runs.start_ms
                    and events.end_ms <= coalesce(job_runs.end_ms, 9223372036854770000)
                ) desc nulls last,
                job_runs.start_ms desc nulls last
        ) = 1
    )
)

select * from numbered anti join reused using (cluster, run_id)
union all by name
select * from renumbered
union all by name
select * from attempts_inferred
