-- Timeline of each attempt, for its whole gang: the pieces of job evidence with their gaps classified by telemetry; an
-- attempt that retained nothing is failed as a whole.
-- grain: attempt_key, start_ms
-- end_ms: null: the attempt still runs
-- stretch_ms: start of the stretch that the piece is in: steps and short pieces that touch, of which the ledger has
--  amounts (int_step_amounts); null: the piece is a segment of the ledger
-- materialised: attempts, since every GPU of the gang joins it
-- skip_if_empty: temp.int_attempts
-- change_tracking: start_ms, end_ms
with gaps as (
    select
        pieces.attempt_key,
        attempts.job_run_key,
        pieces.start_ms,
        pieces.end_ms
    from temp.attempt_pieces as pieces
    inner join temp.int_attempts as attempts using (attempt_key)
    where pieces.is_gap
),

gap_gpus as (
    select
        gaps.attempt_key,
        gaps.start_ms,
        gaps.end_ms,
        holds.gpu_uuid,
        holds.gpu_instance,
        unnest(range(gaps.start_ms // one_hour_ms(), gaps.end_ms // one_hour_ms() + 1)) * one_hour_ms() as hour_ms
    from gaps
    inner join intermediate.int_holds as holds
        on gaps.job_run_key = holds.job_run_key
        and holds.start_ms < gaps.end_ms
        and coalesce(holds.end_ms, gaps.end_ms) > gaps.start_ms
),

-- each reading counts for the time it covers; excludes the ends, where a reading covers more than the gap
trimmed as (
    select
        gap_gpus.attempt_key,
        gap_gpus.start_ms,
        activity.is_active,
        activity.start_ms as seen_from_ms,
        activity.end_ms as seen_to_ms,
        gap_gpus.start_ms + greatest(threshold('gap_trim_ms'), activity.interval_ms) as from_ms,
        gap_gpus.end_ms - greatest(threshold('gap_trim_ms'), activity.interval_ms) as to_ms
    from gap_gpus
    inner join intermediate.int_gpu_activity as activity using (gpu_uuid, gpu_instance, hour_ms)
    where activity.start_ms < gap_gpus.end_ms and activity.end_ms > gap_gpus.start_ms
),

-- is_long: the gap is long enough for a reading of some GPU that covers nothing else
seen as (
    select
        attempt_key,
        start_ms,
        bool_or(to_ms >= from_ms) as is_long,
        sum(greatest(0, least(seen_to_ms, to_ms) - greatest(seen_from_ms, from_ms))) as seen_ms,
        coalesce(
            sum(greatest(0, least(seen_to_ms, to_ms) - greatest(seen_from_ms, from_ms))) filter (not is_active), 0
        ) as idle_ms
    from trimmed
    group by attempt_key, start_ms
),

settled as (
    select
        pieces.attempt_key,
        case
            when not pieces.is_gap then pieces.category
            when seen.seen_ms > 0 and seen.idle_ms >= threshold('gap_idle_share') * seen.seen_ms
                then 'idle_held'
            when seen.seen_ms > 0 or not seen.is_long then 'busy_unclassified'
            else 'unknown'
        end as category,
        case when pieces.is_gap then 'undeclared_gap' else pieces.phase end as phase,
        pieces.start_ms,
        pieces.end_ms
    from temp.attempt_pieces as pieces
    left join seen using (attempt_key, start_ms)
),

suspended as (
    -- accounting reports the duration, not the time: without job evidence it is put at the end of the hold
    select
        attempt_key,
        'suspended' as category,
        'placement_assumed' as phase,
        greatest(start_ms, end_ms - suspended_s * 1000) as start_ms,
        end_ms
    from temp.int_attempts as attempts
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
    inner join temp.attempt_edges as edges using (attempt_key)
    where settled.category is not null or edges.is_without_progress
    union all
    select * from suspended
),

waits as (
    select
        attempts.attempt_key,
        greatest(waits.start_ms, attempts.start_ms) as start_ms,
        case when waits.end_ms is null then attempts.end_ms else least(waits.end_ms, attempts.end_ms) end as end_ms,
        waits.end_ms is null and attempts.end_ms is null as is_open
    from intermediate.int_gang_waits as waits
    inner join temp.int_attempts as attempts using (job_run_key)
    where
        coalesce(waits.end_ms, forever_ms()) > attempts.start_ms
        and coalesce(attempts.end_ms, forever_ms()) > waits.start_ms
),

-- waiting for the rest of the gang comes before anything the job says, but after being suspended
after_waits as (
    select
        timeline.attempt_key,
        timeline.category,
        timeline.phase,
        case
            when timeline.category = 'suspended' then timeline.start_ms
            else greatest(timeline.start_ms, coalesce(waits.end_ms, timeline.start_ms))
        end as start_ms,
        timeline.end_ms
    from timeline
    left join waits using (attempt_key)
    where
        timeline.category = 'suspended'
        or waits.attempt_key is null
        or (not waits.is_open and coalesce(timeline.end_ms, forever_ms()) > waits.end_ms)
    union all
    select attempt_key, 'gang_wait', null, start_ms, end_ms from waits
),

sized as (
    select
        *,
        coalesce(
            category = 'step_unsplit'
            or end_ms - start_ms < threshold('segment_min_ms')
            and category not in ('failed_without_progress', 'gang_wait', 'suspended'),
            false
        ) as is_fine
    from after_waits
),

marked as (
    select
        *,
        (attempt_key, is_fine, start_ms) is distinct from lag((attempt_key, is_fine, end_ms)) over (
            order by attempt_key, start_ms
        ) as is_new
    from sized
),

numbered as (
    select
        *,
        count_if(is_new) over (order by attempt_key, start_ms rows unbounded preceding) as stretch
    from marked
),

stretches as (
    select stretch, min(start_ms) as stretch_ms
    from numbered
    where is_fine
    group by stretch
    having count(*) > 1 or bool_or(category = 'step_unsplit')
)

select
    timeline.attempt_key,
    attempts.job_run_key,
    timeline.category,
    timeline.phase,
    timeline.start_ms,
    timeline.end_ms,
    stretches.stretch_ms
from numbered as timeline
inner join temp.int_attempts as attempts using (attempt_key)
left join stretches using (stretch)
