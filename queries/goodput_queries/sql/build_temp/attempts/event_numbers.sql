-- Numbers of the attempts of this build as events give them, with the number that counts and the job run of their name.
-- grain: cluster, run_id, attempt
-- skip_if_empty: temp.dirty_run_ids where exists (from raw.job_events where attempt is not null and ts >= from_ms(build_events_from_ms()))
-- number: as given, but where it only occurs after its hold: that of the attempt nearest in time
-- job_run_start_ms: of the job run of its name that is nearest to it
with lives as (
    select
        cluster,
        run_id,
        attempt,
        min(start_ms) as first_ms,
        max(end_ms) as last_ms,
        max(start_ms) filter (where begins_attempt(event)) as last_begun_ms,
        max(start_ms) filter (where event = 'job.start') as last_start_ms,
        list(distinct host) filter (where host is not null) as hosts
    from staging.stg_job_events
    semi join temp.dirty_run_ids using (cluster, run_id)
    where attempt is not null and ts >= from_ms(build_events_from_ms())
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
)

select
    lives.*,
    coalesce(strays.nearest_attempt, lives.attempt) as number,
    nearest.job_run_start_ms
from lives
left join strays using (cluster, run_id, attempt)
left join nearest using (cluster, run_id, attempt)
