-- What each attempt did, for its whole gang: the pieces of job evidence with their gaps settled by
-- telemetry and, where the attempt kept nothing, all of it as failed.
-- grain: attempt_key, start_ms
-- end_ms: null: the attempt still runs
-- materialised: full, since every GPU of the gang joins it
-- dirties: start_ms, end_ms
with pieces as (select * from intermediate.int_attempt_pieces),

attempts as (select * from intermediate.int_attempts),

edges as (select * from intermediate.int_attempt_edges),

gaps as (
    select
        pieces.attempt_key,
        attempts.job_run_key,
        pieces.start_ms,
        pieces.end_ms,
        unnest(range(pieces.start_ms // 3600000, pieces.end_ms // 3600000 + 1)) * 3600000 as hour_ms
    from pieces
    inner join attempts using (attempt_key)
    where pieces.is_gap
),

-- few gaps meet millions of readings: the GPUs of the gaps first, or the planner pairs holds with readings
gap_gpus as materialized (
    select
        gaps.attempt_key,
        gaps.start_ms,
        gaps.end_ms,
        gaps.hour_ms,
        holds.gpu_uuid,
        holds.gpu_instance
    from gaps
    inner join intermediate.int_holds as holds
        on gaps.job_run_key = holds.job_run_key
        and holds.start_ms < gaps.end_ms
        and coalesce(holds.end_ms, gaps.end_ms) > gaps.start_ms
),

gap_samples as (
    select
        gap_gpus.attempt_key,
        gap_gpus.start_ms,
        count(*) as samples,
        count_if(coalesce(samples.engine_active_ratio > threshold('idle_engine_ratio'),
            samples.gpu_busy_ratio > threshold('idle_busy_ratio'))) as active_samples
    from staging.stg_gpu_samples as samples
    inner join gap_gpus
        on samples.gpu_uuid = gap_gpus.gpu_uuid
        and samples.gpu_instance = gap_gpus.gpu_instance
        and samples.ts_ms // 3600000 * 3600000 = gap_gpus.hour_ms
    inner join intermediate.int_sample_intervals as intervals
        on samples.source = intervals.source and gap_gpus.hour_ms = intervals.hour_ms
    where
        samples.ts_ms >= gap_gpus.start_ms + greatest(threshold('gap_trim_ms'), intervals.interval_ms)
        and samples.ts_ms <= gap_gpus.end_ms - greatest(threshold('gap_trim_ms'), intervals.interval_ms)
        and coalesce(samples.engine_active_ratio, samples.gpu_busy_ratio) is not null
        -- a reading whose profiling shares are incomplete is no reading (rule 10)
        and (samples.engine_active_ratio is not null or not samples.is_flagged)
    group by gap_gpus.attempt_key, gap_gpus.start_ms
),

settled as (
    select
        pieces.attempt_key,
        case
            when not pieces.is_gap then pieces.category
            when gap_samples.samples > 0 and gap_samples.active_samples = 0 then 'idle_held'
            else 'busy_unclassified'
        end as category,
        case when pieces.is_gap then 'undeclared_gap' else pieces.phase end as phase,
        pieces.start_ms,
        pieces.end_ms
    from pieces
    left join gap_samples using (attempt_key, start_ms)
),

suspended as (
    -- accounting tells how long, not when: without job evidence the time is put at the end of the hold
    select
        attempt_key,
        'suspended' as category,
        'placement_assumed' as phase,
        greatest(start_ms, end_ms - suspended_s * 1000) as start_ms,
        end_ms
    from attempts
    where suspended_s > 0 and not has_events and end_ms is not null
),

timeline as (
    select
        settled.attempt_key,
        case when edges.is_without_progress then 'failed_without_progress' else settled.category end as category,
        case when edges.is_without_progress then settled.category else settled.phase end as phase,
        settled.start_ms,
        settled.end_ms
    from settled
    inner join edges using (attempt_key)
    where settled.category is not null or edges.is_without_progress
    union all
    select * from suspended
)

select
    timeline.attempt_key,
    attempts.job_run_key,
    timeline.category,
    timeline.phase,
    timeline.start_ms,
    timeline.end_ms
from timeline
inner join attempts using (attempt_key)
