-- Changes of the step time of attempts: an episode from where steps became slower (or faster) than before until they are
-- as before again, or to the attempt's last step. Data waits, checkpoints and restarts are no such change.
-- The mean of w bins after a place is compared with that of w bins before it (moving sums, Eichinger and Kirch 2018), for
-- several w; the noise is the median of all these differences, so that it holds for noise with memory, too. An attempt
-- of fewer than 24 bins (130 steps) has too few of them, and no changes.
-- grain: attempt_key, since_ms
-- access: team
-- skip_if_empty: intermediate.int_train_steps
-- since_ms, until_ms: start of the first and end of the last step; until_at: null: it lasts
-- first_step, last_step: to the bin
-- before_ms, after_ms: median step time before and inside; ratio: after / before
-- lost_gpu_ms: time over `before` x GPUs; 0 where steps became faster
-- score: difference of the change over the noise
with bins as (select * from marts.step_bins),

-- a median of three keeps edges and drops single bins
smoothed as (
    select
        *,
        coalesce(lag(level_ms) over places, level_ms) as earlier_ms,
        coalesce(lead(level_ms) over places, level_ms) as later_ms,
        count(*) over (partition by attempt_key) as bins
    from bins
    window places as (partition by attempt_key order by bin)
),

scaled as (
    select
        attempt_key,
        bin,
        unnest([4, 8, 16, 32, 48]) as width,
        bins,
        ln(greatest(least(level_ms, earlier_ms), least(greatest(level_ms, earlier_ms), later_ms))) as log_ms
    from smoothed
),

compared as (
    select
        attempt_key,
        bin,
        width,
        avg(log_ms) over after_it - avg(log_ms) over before_it as log_change
    from scaled
    where bins >= 6 * width
    window
        before_it as (partition by attempt_key, width order by bin rows between width preceding and 1 preceding),
        after_it as (partition by attempt_key, width order by bin rows between current row and width - 1 following)
    qualify bin > width and bin + width - 1 <= bins
),

scored as (
    select
        attempt_key,
        bin,
        width,
        log_change,
        abs(log_change) / greatest(1.4826 * noise.log_noise, 1e-6) as score,
        abs(log_change) = max(abs(log_change)) over (
            partition by attempt_key, width order by bin rows between width preceding and width following
        ) as is_peak
    from compared
    inner join (
        select attempt_key, width, median(abs(log_change)) as log_noise from compared group by attempt_key, width
    ) as noise using (attempt_key, width)
),

peaks as materialized (
    select attempt_key, bin, width, log_change, score
    from scored
    where
        is_peak
        and score >= threshold('step_change_score')
        and abs(log_change) >= ln(1 + threshold('step_change_min'))
),

-- of one change seen at several widths the place that shows it best
places as (
    select attempt_key, bin, max(score) as score
    from peaks
    where not exists (
        select 1
        from peaks as better
        where
            better.attempt_key = peaks.attempt_key
            and sign(better.log_change) = sign(peaks.log_change)
            and abs(better.bin - peaks.bin) <= greatest(better.width, peaks.width)
            and (better.score, better.bin, better.width) > (peaks.score, peaks.bin, peaks.width)
    )
    group by attempt_key, bin
),

parted as (
    select
        bins.*,
        places.score,
        count(places.bin) over (partition by attempt_key order by bin) as part
    from bins
    left join places using (attempt_key, bin)
    where attempt_key in (select attempt_key from places)
),

levels as (
    select attempt_key, part, median(level_ms) as level_ms from parted group by attempt_key, part
),

-- ... and is no change where the medians around it hardly differ
edges as (
    select
        *,
        coalesce(
            abs(ln(level_ms / lag(level_ms) over (partition by attempt_key order by part)))
            >= ln(1 + threshold('step_change_min')),
            false
        )::integer as is_edge
    from levels
),

segmented as (
    select parted.*, edges.segment
    from parted
    inner join (
        select attempt_key, part, sum(is_edge) over (partition by attempt_key order by part) as segment from edges
    ) as edges using (attempt_key, part)
),

segments as (
    select attempt_key, segment, median(level_ms) as level_ms, max(score) as score
    from segmented
    group by attempt_key, segment
),

-- against the fastest it was before, so that steps that become slower twice are one episode
based as (
    select
        *,
        min(level_ms) over (
            partition by attempt_key order by segment rows between unbounded preceding and 1 preceding
        ) as before_ms,
        case
            when level_ms >= before_ms * (1 + threshold('step_change_min')) then 'slower'
            when level_ms <= before_ms / (1 + threshold('step_change_min')) then 'faster'
        end as direction
    from segments
),

episodes as (
    select *, sum(is_start) over (partition by attempt_key order by segment) as episode
    from (
        select
            *,
            coalesce(
                direction = 'faster'
                or direction is distinct from lag(direction) over (partition by attempt_key order by segment),
                true
            )::integer as is_start
        from based
    )
),

ends as (
    select attempt_key, max(end_ms) as last_ms from bins group by attempt_key
),

changes as (
    select
        any_value(segmented.run_key) as run_key,
        segmented.attempt_key,
        any_value(episodes.direction) as direction,
        min(segmented.start_ms) as since_ms,
        max(segmented.end_ms) as until_ms,
        min(segmented.first_step) as first_step,
        max(segmented.last_step) as last_step,
        sum(segmented.steps)::bigint as steps,
        any_value(episodes.before_ms) as before_ms,
        median(segmented.level_ms) as after_ms,
        arg_min(episodes.score, segmented.bin) as score,
        sum(greatest(segmented.level_ms - episodes.before_ms, 0) * segmented.steps * segmented.gpus) as extra_gpu_ms
    from segmented
    inner join episodes using (attempt_key, segment)
    where episodes.direction is not null
    group by segmented.attempt_key, episodes.episode
)

select
    changes.* exclude (direction, extra_gpu_ms),
    attempts.attempt,
    from_ms(changes.since_ms) as since_at,
    case when changes.until_ms < ends.last_ms then from_ms(changes.until_ms) end as until_at,
    changes.after_ms / changes.before_ms as ratio,
    case when changes.direction = 'slower' then round(changes.extra_gpu_ms)::bigint else 0 end as lost_gpu_ms,
    format(
        'Step time {} from {:.4g} to {:.4g} {} ({:+.1f} %) at step {}{}',
        case when changes.direction = 'slower' then 'rose' else 'fell' end,
        changes.before_ms / case when changes.before_ms < 1000 then 1 else 1000 end,
        changes.after_ms / case when changes.before_ms < 1000 then 1 else 1000 end,
        case when changes.before_ms < 1000 then 'ms' else 's' end,
        100 * (changes.after_ms / changes.before_ms - 1),
        changes.first_step,
        case
            when changes.until_ms = ends.last_ms then ' and stayed so.'
            when changes.direction = 'slower' then ' until step ' || changes.last_step || '.'
            else ' and changed again at step ' || (changes.last_step + 1) || '.'
        end
    ) as sentence
from changes
inner join ends using (attempt_key)
inner join intermediate.int_attempts as attempts using (attempt_key)
where in_window(changes.since_ms, changes.until_ms)
