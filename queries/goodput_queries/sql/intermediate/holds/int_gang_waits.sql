-- Gang waits: intervals in which part of a gang was up and waited for the rest, of job runs whose parts start separately.
-- grain: job_run_key
-- end_ms: the first moment at which as many GPUs are allocated as were asked for; null: not yet
-- materialised: full, since the timeline joins it
-- skip_if_empty: raw.holds where start_at is not null
-- change_tracking: start_ms, end_ms
with runs as (
    select runs.job_run_key, greatest(runs.gpus, coalesce(runs.gpus_requested, runs.gpus)) as wanted
    from intermediate.int_job_runs as runs
    semi join staging.stg_gangs_in_parts using (cluster, job_id_raw, submit_ms)
    where runs.gpus > 0
),

changes as (
    select job_run_key, start_ms as at_ms, 1 as gpus from intermediate.int_holds semi join runs using (job_run_key)
    union all
    select job_run_key, end_ms, -1 from intermediate.int_holds semi join runs using (job_run_key)
    where end_ms is not null
),

levels as (
    select
        job_run_key,
        at_ms,
        sum(sum(gpus)) over (partition by job_run_key order by at_ms rows unbounded preceding) as held
    from changes
    group by job_run_key, at_ms
),

waits as (
    select
        runs.job_run_key,
        min(levels.at_ms) as start_ms,
        min(levels.at_ms) filter (where levels.held >= runs.wanted) as end_ms
    from runs
    inner join levels using (job_run_key)
    group by runs.job_run_key
)

select * from waits where end_ms is null or end_ms > start_ms
