-- Every stretch of no activity on a GPU as an object: when, where, whose, why, how sure, what it cost. A
-- stretch that crosses the border of a hold is one gap on either side.
-- grain: gpu_uuid, gpu_instance, start_at
-- gap_s: from the last active reading to the first active one, within the hold or the free time
-- cause: the ledger's category that most of the gap lies in
-- gpu_ms: milliseconds of a whole GPU inside the gap
-- readings_coverage_ratio: share of the gap that readings cover
with islands as (
    select *
    from intermediate.int_idle_islands
    where
        end_ms - start_ms >= threshold('gap_list_min_ms')
        and in_window(start_ms, end_ms)
),

borders as (
    select islands.gpu_uuid, islands.gpu_instance, islands.start_ms as island_ms, islands.end_ms as island_end_ms,
        islands.seen_ms, unnest([holds.start_ms, holds.end_ms]) as at_ms
    from islands
    inner join intermediate.int_holds as holds using (gpu_uuid, gpu_instance)
    where holds.start_ms < islands.end_ms and coalesce(holds.end_ms, islands.end_ms) > islands.start_ms
    union
    select gpu_uuid, gpu_instance, start_ms, end_ms, seen_ms, unnest([start_ms, end_ms]) from islands
),

pieces as (
    select
        gpu_uuid,
        gpu_instance,
        island_ms,
        island_end_ms,
        seen_ms,
        at_ms as start_ms,
        lead(at_ms) over (partition by gpu_uuid, gpu_instance, island_ms order by at_ms) as end_ms
    from borders
    where at_ms between island_ms and island_end_ms
),

parts as (
    select
        pieces.*,
        segments.cluster,
        segments.node,
        segments.category,
        segments.phase,
        segments.job_run_key,
        share_ms(
            greatest(segments.start_ms, pieces.start_ms),
            least(segments.end_ms, pieces.end_ms),
            segments.share_lo, segments.share_hi, segments.share_of
        ) as gpu_ms,
        segments.gpu_model,
        segments.mig_profile,
        segments.hour_ms
    from pieces
    inner join marts.ledger_segments as segments
        on pieces.gpu_uuid = segments.gpu_uuid
        and pieces.gpu_instance = segments.gpu_instance
        and segments.start_ms < pieces.end_ms
        and segments.end_ms > pieces.start_ms
    where pieces.end_ms - pieces.start_ms >= threshold('gap_list_min_ms')
),

by_category as (
    select
        gpu_uuid, gpu_instance, start_ms, end_ms, island_ms, island_end_ms, seen_ms, cluster, node,
        job_run_key, category, gpu_model, mig_profile,
        min(hour_ms) as hour_ms,
        arg_max(coalesce(phase, ''), gpu_ms) as phase,
        sum(gpu_ms)::bigint as gpu_ms
    from parts
    group by all
),

gaps as (
    select
        gpu_uuid, gpu_instance, start_ms, end_ms, island_ms, island_end_ms, seen_ms, cluster, node,
        job_run_key, gpu_model, mig_profile,
        min(hour_ms) as hour_ms,
        arg_max(category, gpu_ms) as category,
        arg_max(phase, gpu_ms) as phase,
        sum(gpu_ms)::bigint as gpu_ms,
        max(gpu_ms) / nullif(sum(gpu_ms), 0) as main_share_ratio
    from by_category
    group by all
)

select
    left(md5(gaps.gpu_uuid || gaps.gpu_instance || gaps.start_ms), 12) as gap_id,
    gaps.cluster,
    gaps.node,
    gaps.gpu_uuid,
    gaps.gpu_instance,
    units.gpu_index,
    from_ms(gaps.start_ms) as start_at,
    from_ms(gaps.end_ms) as end_at,
    (gaps.end_ms - gaps.start_ms) / 1000.0 as gap_s,
    gaps.job_run_key is not null as is_held,
    gaps.job_run_key,
    owners.run_key,
    owners.run_id,
    owners.team,
    owners.user_name,
    gaps.category,
    categories.label,
    categories.colour,
    coalesce(
        phases.label,
        nullif(replace(gaps.phase, '_', ' '), ''),
        case when gaps.category = 'idle_held' then 'Held, no job evidence' end
    ) as cause,
    case
        when gaps.category in ('checkpoint_save', 'restore', 'data_stall', 'other_declared') then 'Confirmed'
        when gaps.category in ('unknown', 'busy_unclassified', 'free_unknown') then 'Not confirmed'
        else 'Likely'
    end as confidence,
    cast(round(100 * gaps.main_share_ratio) as integer) || ' % of it is ' || case
        when gaps.phase = 'short_idle' then 'idle for less than the limit'
        else categories.label
    end || '; '
        || cast(round(100.0 * least(1, gaps.seen_ms / nullif(gaps.island_end_ms - gaps.island_ms, 0))) as integer)
        || ' % covered by readings' as evidence,
    gaps.gpu_ms,
    gaps.gpu_ms / 3600000.0 * prices.usd_per_gpu_h::double as usd,
    least(1, gaps.seen_ms / nullif(gaps.island_end_ms - gaps.island_ms, 0)) as readings_coverage_ratio
from gaps
inner join reference.gpu_second_categories as categories using (category)
left join reference.phases as phases using (phase)
left join intermediate.int_job_run_owners as owners using (job_run_key)
left join (
    select gpu_uuid, gpu_instance, max(gpu_index) as gpu_index
    from intermediate.int_gpu_units group by gpu_uuid, gpu_instance
) as units using (gpu_uuid, gpu_instance)
left join intermediate.int_prices as prices
    on gaps.cluster = prices.cluster
    and coalesce(gaps.gpu_model, '') = prices.gpu_model
    and coalesce(gaps.mig_profile, '') = prices.mig_profile
    and coalesce(owners.partition, '') = prices.partition
    and coalesce(owners.qos, '') = prices.qos
    and gaps.hour_ms >= prices.from_ms
    and gaps.hour_ms < prices.to_ms
where
    in_scope(
        gaps.cluster, gaps.node, gaps.gpu_uuid, gaps.gpu_model,
        owners.team, owners.user_name, owners.run_key, owners.partition
    )
