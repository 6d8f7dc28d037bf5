-- The events of runs that give a number again in a later job run (a counter that restarts with each one), numbered by job run.
-- grain: event_id
-- skip_if_empty: temp.event_numbers
with reused as (
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
        from temp.event_numbers as lives
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
    from (select * from temp.given_events semi join reused using (cluster, run_id)) as events
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
)

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
