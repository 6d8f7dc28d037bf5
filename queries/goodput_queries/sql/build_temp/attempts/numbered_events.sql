-- The events of jobs that number their attempts, of the runs in this build.
-- grain: event_id
-- skip_if_empty: temp.dirty_run_ids where exists (from raw.job_events where attempt is not null and ts >= from_ms(build_events_from_ms()))
-- attempt: as given, unless the number comes again in a later job run (a counter that restarts with each one); a
--  number that only occurs after its hold is that of the attempt nearest in time
-- job_run_start_ms: of the job run of its name that is nearest to it
with events as materialized (
    select *
    from staging.stg_job_events
    semi join temp.dirty_run_ids using (cluster, run_id)
    -- zones are known for it: what came before is not read
    where attempt is not null and ts >= from_ms(build_events_from_ms())
),

lives as (
    select
        cluster,
        run_id,
        attempt,
        min(start_ms) as first_ms,
        max(end_ms) as last_ms,
        max(start_ms) filter (where begins_attempt(event)) as last_begun_ms,
        max(start_ms) filter (where event = 'job.start') as last_start_ms,
        list(distinct host) filter (where host is not null) as hosts
    from events
    group by cluster, run_id, attempt
),

nearest as (
    select
        lives.*,
        job_runs.job_run_key,
        job_runs.start_ms as job_run_start_ms,
        off_hold_ms(lives.first_ms, lives.last_ms, job_runs.start_ms, job_runs.end_ms) as off_ms
    from lives
    inner join temp.named_job_runs as job_runs
        on lives.cluster = job_runs.cluster
        and lives.run_id = job_runs.run_id
        and is_near_hold(job_runs.is_id, lives.first_ms, lives.last_ms, job_runs.start_ms, job_runs.end_ms)
        and (job_runs.is_id or lives.hosts is null or list_has_any(job_runs.nodes, lives.hosts))
    qualify row_number() over (
        partition by lives.cluster, lives.run_id, lives.attempt
        order by job_runs.is_id desc, off_ms, job_runs.start_ms, job_runs.job_run_key
    ) = 1
),

strays as (
    select
        stray.cluster,
        stray.run_id,
        stray.attempt,
        coalesce(
            arg_min(
                other.attempt,
                (greatest(other.first_ms - stray.last_ms, stray.first_ms - other.last_ms), other.attempt)
            ) filter (where other.off_ms = 0),
            min(other.attempt)
        ) as nearest_attempt
    from nearest as stray
    inner join nearest as other using (cluster, run_id, job_run_key)
    where stray.off_ms > 0 and stray.first_ms > stray.job_run_start_ms
    group by stray.cluster, stray.run_id, stray.attempt
),

joined as (
    select
        events.* replace (coalesce(strays.nearest_attempt, events.attempt) as attempt),
        nearest.job_run_start_ms
    from events
    left join strays using (cluster, run_id, attempt)
    left join nearest using (cluster, run_id, attempt)
),

reused as (
    select distinct cluster, run_id
    from (
        select
            lives.cluster,
            lives.run_id,
            job_runs.start_ms,
            lag(job_runs.end_ms) over (
                partition by lives.cluster, lives.run_id, lives.attempt
                order by job_runs.start_ms, job_runs.end_ms, job_runs.job_run_key
            ) as before_end_ms
        from lives
        inner join temp.named_job_runs as job_runs
            on lives.cluster = job_runs.cluster
            and lives.run_id = job_runs.run_id
            and lives.first_ms < job_runs.end_ms
            -- clocks differ by up to a second; a start says by itself what it is
            and (lives.last_begun_ms > job_runs.start_ms + 1000 or lives.last_start_ms >= job_runs.start_ms)
    )
    where before_end_ms <= start_ms
),

in_job_runs as (
    select events.* exclude (job_run_start_ms), job_runs.start_ms as job_run_start_ms
    from (select * from joined semi join reused using (cluster, run_id)) as events
    left join temp.named_job_runs as job_runs
        on events.cluster = job_runs.cluster
        and events.run_id = job_runs.run_id
        and is_event_near_hold(
            job_runs.is_id, job_runs.nodes, events.host,
            events.start_ms, events.end_ms, job_runs.start_ms, job_runs.end_ms
        )
    qualify row_number() over (
        partition by events.event_id
        order by
            job_runs.is_id desc nulls last,
            event_off_hold_ms(events.event, events.start_ms, events.end_ms, job_runs.start_ms, job_runs.end_ms),
            case when events.event = 'job.start' then -job_runs.start_ms else job_runs.start_ms end,
            job_runs.job_run_key
    ) = 1
),

-- a number whose attempt starts nothing in a job run arrived late there: it belongs to the job run in which it started
begun as (
    select cluster, run_id, attempt, job_run_start_ms
    from in_job_runs
    where begins_attempt(event) and job_run_start_ms is not null
    group by all
),

renumbered as (
    select
        events.* exclude (attempt, job_run_start_ms),
        coalesce(begun.job_run_start_ms, events.job_run_start_ms) as job_run_start_ms,
        -- a number may be as large as the time of its start
        cast(
            dense_rank() over (
                partition by events.cluster, events.run_id
                order by coalesce(begun.job_run_start_ms, events.job_run_start_ms) nulls first, events.attempt
            ) - 1 as integer
        ) as attempt
    from in_job_runs as events
    asof left join begun
        on events.cluster = begun.cluster
        and events.run_id = begun.run_id
        and events.attempt = begun.attempt
        and events.job_run_start_ms >= begun.job_run_start_ms
)

select * from joined anti join reused using (cluster, run_id)
union all by name
select * from renumbered
