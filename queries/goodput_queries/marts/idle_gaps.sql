-- Every stretch of no activity on a GPU as an object: when, where, whose, why, how sure, what it cost. A
-- stretch that crosses the border of a hold is one gap on either side.
-- grain: gpu_uuid, gpu_instance, start_at
-- gap_s: from the last active reading to the first active one, within the hold or the free time
-- cause: the ledger's category that most of the gap lies in
-- is_beside_work: its job stepped meanwhile, and the gap is no pause (threshold idle_min_ms): the ledger counts it
--  with the steps, since the job speaks for all its GPUs
-- gpu_ms: milliseconds of a whole GPU inside the gap
-- readings_coverage_ratio: share of the gap that readings cover
-- joined and grouped by numbers: the names of a GPU, its node and its model take several times as long
with places as materialized (
    select
        (row_number() over ())::integer as place,
        (dense_rank() over (order by gpu_uuid, gpu_instance))::integer as unit,
        max(gpu_index) over (partition by gpu_uuid, gpu_instance) as gpu_index,
        cluster,
        node,
        gpu_uuid,
        gpu_instance,
        gpu_model,
        mig_profile,
        start_ms,
        coalesce(end_ms, 9223372036854775807) as end_ms
    from intermediate.int_gpu_units
),

units as materialized (
    select distinct unit, gpu_uuid, gpu_instance
    from places
    where in_place(cluster, node, gpu_uuid, gpu_model)
),

islands as (
    select units.unit, islands.start_ms, islands.end_ms, islands.seen_ms
    from intermediate.int_idle_islands as islands
    inner join units using (gpu_uuid, gpu_instance)
    where
        islands.end_ms - islands.start_ms >= threshold('gap_list_min_ms')
        and in_window(islands.start_ms, islands.end_ms)
),

holds as (
    select units.unit, holds.job_run_key, holds.start_ms, coalesce(holds.end_ms, 9223372036854775807) as end_ms
    from intermediate.int_holds as holds
    inner join units using (gpu_uuid, gpu_instance)
),

-- holds, the time between them, before the first and after the last
held_or_free as (
    select unit, job_run_key, start_ms, end_ms from holds
    union all
    select unit, null, coalesce(lag(end_ms) over (partition by unit order by start_ms), 0), start_ms from holds
    union all
    select units.unit, null, coalesce(max(holds.end_ms), 0), 9223372036854775807
    from units
    left join holds using (unit)
    group by units.unit
),

pieces as materialized (
    select
        (row_number() over ())::integer as piece,
        islands.unit,
        spans.job_run_key,
        greatest(islands.start_ms, spans.start_ms) as start_ms,
        least(islands.end_ms, spans.end_ms) as end_ms,
        least(1, islands.seen_ms / nullif(islands.end_ms - islands.start_ms, 0)) as readings_coverage_ratio
    from islands
    inner join held_or_free as spans
        on islands.unit = spans.unit
        and spans.start_ms < islands.end_ms
        and spans.end_ms > islands.start_ms
    left join intermediate.int_job_run_owners as owners using (job_run_key)
    where
        least(islands.end_ms, spans.end_ms) - greatest(islands.start_ms, spans.start_ms)
            >= threshold('gap_list_min_ms')
        and of_owner(owners.team, owners.user_name, owners.run_key, owners.partition)
),

-- segments are cut at hours, so that few of a GPU need to be looked at for a piece in an hour
piece_hours as (
    select piece, unit, start_ms, end_ms, unnest(range(start_ms // 3600000, (end_ms - 1) // 3600000 + 1)) as hour
    from pieces
),

segments as (
    select
        places.unit, places.place, segments.hour_ms // 3600000 as hour, segments.start_ms, segments.end_ms,
        segments.category, segments.phase, segments.share_lo, segments.share_hi, segments.share_of
    from marts.ledger_segments as segments
    inner join places
        on segments.gpu_uuid = places.gpu_uuid
        and segments.gpu_instance = places.gpu_instance
        and segments.start_ms >= places.start_ms
        and segments.start_ms < places.end_ms
    where in_place(segments.cluster, segments.node, segments.gpu_uuid, segments.gpu_model)
),

by_category as (
    select
        parts.piece,
        parts.place,
        parts.category,
        min(parts.hour) as hour,
        arg_max(coalesce(parts.phase, ''), parts.gpu_ms) as phase,
        sum(parts.gpu_ms)::bigint as gpu_ms
    from (
        select
            pieces.piece,
            segments.place,
            segments.hour,
            segments.category,
            segments.phase,
            share_ms(
                greatest(segments.start_ms, pieces.start_ms),
                least(segments.end_ms, pieces.end_ms),
                segments.share_lo, segments.share_hi, segments.share_of
            ) as gpu_ms
        from piece_hours as pieces
        inner join segments
            on pieces.unit = segments.unit
            and pieces.hour = segments.hour
            and segments.start_ms < pieces.end_ms
            and segments.end_ms > pieces.start_ms
    ) as parts
    group by parts.piece, parts.place, parts.category
),

sums as (
    select
        piece,
        place,
        min(hour) * 3600000 as hour_ms,
        arg_max(category, gpu_ms) as category,
        arg_max(phase, gpu_ms) as phase,
        sum(gpu_ms)::bigint as gpu_ms,
        max(gpu_ms) / nullif(sum(gpu_ms), 0) as main_share_ratio
    from by_category
    group by piece, place
),

gaps as (
    select
        sums.* exclude (piece, place),
        pieces.* exclude (piece, unit),
        places.* exclude (place, unit, start_ms, end_ms),
        categories.label,
        categories.colour,
        sums.category in ('step_unsplit', 'productive', 'at_risk')
            and pieces.end_ms - pieces.start_ms >= threshold('idle_min_ms') as is_beside_work
    from sums
    inner join pieces using (piece)
    inner join places using (place)
    inner join reference.gpu_second_categories as categories using (category)
)

select
    left(md5(gaps.gpu_uuid || gaps.gpu_instance || gaps.start_ms), 12) as gap_id,
    gaps.cluster,
    gaps.node,
    gaps.gpu_uuid,
    gaps.gpu_instance,
    gaps.gpu_index,
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
    gaps.label,
    gaps.colour,
    gaps.is_beside_work,
    case
        when gaps.is_beside_work then 'Unused by its job'
        else coalesce(
            phases.label,
            nullif(replace(gaps.phase, '_', ' '), ''),
            case when gaps.category = 'idle_held' then 'Held, no job evidence' end
        )
    end as cause,
    case
        when gaps.category in ('checkpoint_save', 'restore', 'data_stall', 'other_declared') then 'Confirmed'
        when gaps.category in ('unknown', 'busy_unclassified', 'free_unknown') then 'Not confirmed'
        else 'Likely'
    end as confidence,
    cast(round(100 * gaps.main_share_ratio) as integer) || ' % of it is ' || case
        when gaps.phase = 'short_idle' then 'idle for less than the limit'
        else gaps.label
    end || '; '
        || cast(round(100.0 * gaps.readings_coverage_ratio) as integer)
        || ' % covered by readings' as evidence,
    gaps.gpu_ms,
    gaps.gpu_ms / 3600000.0 * prices.usd_per_gpu_h::double as usd,
    gaps.readings_coverage_ratio
from gaps
left join reference.phases as phases using (phase)
left join intermediate.int_job_run_owners as owners using (job_run_key)
left join intermediate.int_prices as prices
    on gaps.cluster = prices.cluster
    and coalesce(gaps.gpu_model, '') = prices.gpu_model
    and coalesce(gaps.mig_profile, '') = prices.mig_profile
    and coalesce(owners.partition, '') = prices.partition
    and coalesce(owners.qos, '') = prices.qos
    and gaps.hour_ms >= prices.from_ms
    and gaps.hour_ms < prices.to_ms
