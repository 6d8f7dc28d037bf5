-- Gaps of job runs of all owners that repeat at a regular interval: marts.periodic_gaps, of which another team is a filter.
-- grain: job_run_key, coincides
-- evaluated: first
-- skip_if_empty: intermediate.int_holds
-- the columns: see marts.periodic_gaps
with declared as (
    select
        timeline.job_run_key,
        case when timeline.category = 'other_declared' then coalesce(phases.label, categories.label) else categories.label end
            as coincides,
        scope_start(timeline.start_ms) as start_ms,
        scope_end(timeline.end_ms) as end_ms
    from intermediate.int_run_timeline as timeline
    inner join reference.gpu_second_categories as categories using (category)
    left join reference.phases as phases using (phase)
    where
        timeline.category in ('checkpoint_save', 'data_stall', 'other_declared')
        and timeline.end_ms - timeline.start_ms >= threshold('gap_list_min_ms')
        and in_window(timeline.start_ms, timeline.end_ms)
),

-- too few gaps are no period, whatever is left of them below
candidate_runs as (
    select job_run_key
    from (
        select job_run_key from intermediate.int_gang_gaps
        union all
        select job_run_key from declared
    )
    group by job_run_key
    having count(*) > threshold('period_min_repeats')
),

held as materialized (
    select
        holds.job_run_key,
        any_value(holds.cluster) as cluster,
        case when min(holds.node) = max(holds.node) then min(holds.node) end as node,
        case when min(holds.gpu_uuid) = max(holds.gpu_uuid) then min(holds.gpu_uuid) end as gpu_uuid,
        min(holds.start_ms) as start_ms,
        max(holds.end_ms) as end_ms,
        count(distinct (holds.gpu_uuid, holds.gpu_instance)) as gpus,
        sum(holds.held_ms) as held_ms,
        sum(holds.held_ms) / max(holds.to_ms - holds.from_ms) as whole_gpus
    from (
        select
            holds.* replace (least(coalesce(holds.end_ms, clusters.as_of_ms), clusters.as_of_ms) as end_ms),
            scope_start(holds.start_ms) as from_ms,
            scope_end(least(coalesce(holds.end_ms, clusters.as_of_ms), clusters.as_of_ms)) as to_ms,
            (to_ms - from_ms) * (units.share_hi - units.share_lo) / units.share_of as held_ms
        from intermediate.int_holds as holds
        semi join candidate_runs using (job_run_key)
        inner join intermediate.int_clusters as clusters using (cluster)
        inner join intermediate.int_gpu_units as units
            on holds.gpu_uuid = units.gpu_uuid
            and holds.gpu_instance = units.gpu_instance
            and holds.start_ms >= units.start_ms
            and holds.start_ms < coalesce(units.end_ms, forever_ms())
        where
            in_window(holds.start_ms, least(coalesce(holds.end_ms, clusters.as_of_ms), clusters.as_of_ms))
            and in_place(holds.cluster, holds.node, holds.gpu_uuid, units.gpu_model)
    ) as holds
    where holds.to_ms > holds.from_ms
    group by holds.job_run_key
),

idle as materialized (
    select
        job_run_key, coincides, confidence, epoch_ms(start_at) as start_ms, epoch_ms(end_at) as end_ms, gpus, gpu_ms, cost,
        true as is_idle
    from intermediate.int_gang_gaps
    inner join (select job_run_key, start_ms as held_from_ms, end_ms as held_to_ms from held) as held using (job_run_key)
    -- idle with which an allocation begins or ends is start-up and release
    where epoch_ms(start_at) > held_from_ms and epoch_ms(end_at) < held_to_ms
),

-- what telemetry shows as idle is a gap already
active as (
    select
        declared.job_run_key, declared.coincides, 'Confirmed' as confidence, declared.start_ms, declared.end_ms, held.gpus,
        ((declared.end_ms - declared.start_ms) * held.whole_gpus)::bigint as gpu_ms,
        (declared.end_ms - declared.start_ms) * held.whole_gpus / 3600000.0 * prices.price_per_gpu_h as cost,
        false as is_idle
    from declared
    inner join held using (job_run_key)
    inner join intermediate.int_job_run_owners as owners using (job_run_key)
    left join intermediate.int_job_run_prices as prices using (job_run_key)
    where
        not exists (
            select 1 from idle
            where
                idle.job_run_key = declared.job_run_key
                and idle.start_ms < declared.end_ms
                and idle.end_ms > declared.start_ms - threshold('gang_gap_reach_ms')
        )
),

gaps as materialized (
    select *, (row_number() over (order by job_run_key, start_ms))::integer as gap, (start_ms + end_ms) / 2 as middle_ms
    from (
        select * from idle
        union all
        select * from active
    )
    qualify count(*) over (partition by job_run_key) > threshold('period_min_repeats')
),

members as materialized (
    select job_run_key, coincides as series, gap, middle_ms from gaps
    union all
    select job_run_key, null, gap, middle_ms from gaps
    qualify count(distinct coincides) over (partition by job_run_key) > 1
),

distances as materialized (
    select
        job_run_key,
        series,
        gap,
        lead(gap) over of_series as next_gap,
        lead(middle_ms) over of_series - middle_ms as distance_ms
    from members
    window of_series as (partition by job_run_key, series order by middle_ms)
    qualify next_gap is not null
),

candidates as (
    select
        job_run_key,
        series,
        count(*) as distances,
        unnest(list_distinct(quantile_disc(distance_ms, [0.25, 0.5, 0.75]))) as period_ms
    from distances
    group by job_run_key, series
    having count(*) >= threshold('period_min_repeats')
),

counts as (
    select
        candidates.*,
        count_if(
            abs(distances.distance_ms - candidates.period_ms) <= threshold('period_jitter_ratio') * candidates.period_ms
        ) as repeats,
        count_if(
            abs(distances.distance_ms - 2 * candidates.period_ms) <= threshold('period_jitter_ratio') * candidates.period_ms
            or abs(distances.distance_ms - 3 * candidates.period_ms) <= threshold('period_jitter_ratio') * candidates.period_ms
        ) as missed
    from candidates
    inner join distances
        on candidates.job_run_key = distances.job_run_key
        and candidates.series is not distinct from distances.series
    group by all
),

-- the distance that gives the period proves nothing
trials as (
    select
        *,
        distances - missed - 1 as tried,
        (repeats - 1) / nullif(distances - missed - 1, 0) as hit_ratio,
        threshold('period_chance_ratio') as chance
    from counts
),

judged as (
    select
        *,
        tried * case
            when hit_ratio >= 1 then -ln(chance)
            when hit_ratio <= chance then 0
            else hit_ratio * ln(hit_ratio / chance) + (1 - hit_ratio) * ln((1 - hit_ratio) / (1 - chance))
        end / ln(10) - log10(distances) as score
    from trials
),

regular as materialized (
    select job_run_key, series, period_ms, score, missed
    from judged
    where
        repeats >= threshold('period_min_repeats')
        and hit_ratio >= threshold('period_hit_share')
        and score >= threshold('period_min_score')
    qualify
        row_number() over (partition by job_run_key, series order by score desc, period_ms) = 1
        -- all gaps together count only where no kind of them does
        and (series is not null or count(series) over (partition by job_run_key) = 0)
),

hits as (
    select regular.job_run_key, regular.series, distances.gap, distances.next_gap, distances.distance_ms
    from regular
    inner join distances
        on regular.job_run_key = distances.job_run_key
        and regular.series is not distinct from distances.series
        and abs(distances.distance_ms - regular.period_ms) <= threshold('period_jitter_ratio') * regular.period_ms
),

-- a gap lasts from the last active reading before it to the first one after it: one sampling interval too long on average
resolutions as (
    select holds.job_run_key, quantile_disc(intervals.interval_ms, 0.5) as interval_ms
    from intermediate.int_holds as holds
    semi join regular using (job_run_key)
    inner join state.reading_series as readings using (gpu_uuid, gpu_instance)
    inner join intermediate.int_sample_intervals as intervals using (series)
    where
        intervals.hour_ms >= holds.start_ms // one_hour_ms() * one_hour_ms()
        and intervals.hour_ms < coalesce(holds.end_ms, forever_ms())
        and intervals.hour_ms >= scope_from_ms() - one_hour_ms()
        and intervals.hour_ms < scope_to_ms()
    group by holds.job_run_key
),

periods as (
    select job_run_key, series, median(distance_ms) as period_ms, 1.4826 * mad(distance_ms) as jitter_ms
    from hits
    group by job_run_key, series
),

of_regular as (
    select job_run_key, series, gap from hits
    union
    select job_run_key, series, next_gap from hits
),

kinds as (
    select of_regular.job_run_key, of_regular.series, mode(gaps.coincides) as coincides
    from of_regular
    inner join gaps using (job_run_key, gap)
    group by of_regular.job_run_key, of_regular.series
),

sums as (
    select
        gaps.job_run_key,
        of_regular.series,
        min(gaps.start_ms) as first_ms,
        max(gaps.end_ms) as last_ms,
        case
            when count_if(gaps.coincides = kinds.coincides) > 0.5 * count(*) then any_value(kinds.coincides)
            else string_agg(distinct gaps.coincides, ', ' order by gaps.coincides)
        end as coincides,
        mode(gaps.confidence) as confidence,
        count(*) as gaps,
        count(*) filter (where gaps.is_idle) as idle_gaps,
        median(gaps.end_ms - gaps.start_ms) / 1000.0 as gap_s,
        max(gaps.gpus) as gpus,
        sum(gaps.gpu_ms)::bigint as gpu_ms,
        sum(gaps.gpu_ms * case
            when gaps.is_idle and gaps.end_ms > gaps.start_ms
                then greatest(1 - coalesce(resolutions.interval_ms, 0) / (gaps.end_ms - gaps.start_ms), 0)
            else 1
        end) as likely_gpu_ms,
        case when count(gaps.cost) = count(*) then sum(gaps.cost) end as cost
    from of_regular
    inner join gaps using (job_run_key, gap)
    inner join kinds
        on of_regular.job_run_key = kinds.job_run_key
        and of_regular.series is not distinct from kinds.series
    left join resolutions on gaps.job_run_key = resolutions.job_run_key
    group by gaps.job_run_key, of_regular.series
)

select
    'periodic_gaps' as rule,
    held.cluster,
    held.node,
    held.gpu_uuid,
    sums.* exclude (series, first_ms, last_ms, likely_gpu_ms),
    owners.run_key,
    owners.run_id,
    owners.job_name,
    owners.team,
    owners.user_name,
    from_ms(sums.first_ms) as start_at,
    from_ms(sums.last_ms) as end_at,
    periods.period_ms / 1000.0 as period_s,
    regular.missed::bigint as missed,
    sums.likely_gpu_ms / held.held_ms as share_ratio,
    regular.score,
    'every ' || printf('%.0f', periods.period_ms / 1000.0) || ' s (jitter ' || printf('%.0f', periods.jitter_ms / 1000.0)
    || ' s) ' || case
        when sums.idle_gaps = 0 then 'the job paused for '
        else sums.gpus || case when sums.gpus = 1 then ' GPU was' else ' GPUs were' end || ' idle for '
    end
    || case when sums.idle_gaps > 0 then 'up to ' else '' end || printf('%.0f', sums.gap_s) || ' s, ' || sums.gaps || ' times, with: ' || sums.coincides || '; '
    || printf('%.1f', 100 * sums.likely_gpu_ms / held.held_ms) || ' % of the GPU time of run '
    || coalesce(numbered_run_name(owners.run_id, owners.job_id, owners.job_name), owners.run_id, '?')
    || case
        when sums.idle_gaps = 0 then '; readings show no idle time in them'
        when sums.idle_gaps < sums.gaps then '; readings show no idle time in ' || (sums.gaps - sums.idle_gaps) || ' of them'
        else ''
    end as evidence
from sums
inner join regular
    on sums.job_run_key = regular.job_run_key
    and sums.series is not distinct from regular.series
inner join periods
    on sums.job_run_key = periods.job_run_key
    and sums.series is not distinct from periods.series
inner join held on sums.job_run_key = held.job_run_key
left join intermediate.int_job_run_owners as owners on sums.job_run_key = owners.job_run_key
where sums.likely_gpu_ms >= threshold('period_min_share') * held.held_ms
