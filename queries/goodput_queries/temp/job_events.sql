-- The events of the runs that this build looks at, with the attempt worked out where it was not said.
-- grain: event_id
-- attempt: as given, else counted within its job run by the rank's starts: a `job.start`, or a step number
--  that does not go on
with job_events as (
    select events.*
    from staging.stg_job_events as events
    semi join temp.dirty_run_ids using (cluster, run_id)
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

-- ... and in it the number of starts of the rank so far
told_starts as (
    select
        *,
        count_if(event = 'job.start') over (
            partition by cluster, run_id, job_run_start_ms, rank order by ts, event, step
            rows between unbounded preceding and current row
        ) as starts
    from unnumbered
),

starts_marked as (
    select
        *,
        event = 'job.start'
        or (
            event = 'step' and step <= lag(step) over (
                partition by cluster, run_id, job_run_start_ms, rank, event, starts order by ts
            )
        ) as is_start
    from told_starts
),

restarts_counted as (
    select
        *,
        count_if(is_start) over (
            partition by cluster, run_id, job_run_start_ms, rank order by ts, event, step
            rows between unbounded preceding and current row
        ) as restarts
    from starts_marked
),

attempts_inferred as (
    select
        * exclude (attempt, is_start, starts, restarts, job_run_start_ms),
        -- any number that grows from job run to job run and from start to start will do
        cast(
            (dense_rank() over (partition by cluster, run_id order by job_run_start_ms nulls first) - 1)
            * 10000 + greatest(restarts - 1, 0) as integer
        ) as attempt
    from restarts_counted
)

select * from job_events where attempt is not null
union all by name
select * from attempts_inferred
