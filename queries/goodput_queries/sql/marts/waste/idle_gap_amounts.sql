-- Idle gaps by ledger category without the texts of marts.idle_gap_parts, which take as long as all the rest: for who
-- sums up many gaps and shows few.
-- grain: gap_id, category
-- access: team
-- phase, phase_label: detail that the part has most of; '': none
-- the other columns: see marts.idle_gap_parts
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
        greatest(islands.start_ms, spans.start_ms) as whole_start_ms,
        greatest(islands.start_ms, spans.start_ms, coalesce(getvariable('scope_from_ms')::bigint, 0)) as start_ms,
        least(
            islands.end_ms, spans.end_ms, coalesce(getvariable('scope_to_ms')::bigint, 9223372036854775807)
        ) as end_ms,
        owners.run_key,
        owners.run_id,
        owners.team,
        owners.user_name,
        coalesce(owners.partition, '') as partition,
        coalesce(owners.qos, '') as qos,
        -- of the whole time of no activity, part of which another team may have had the GPU
        case
            when sees_all_teams() or (islands.start_ms >= spans.start_ms and islands.end_ms <= spans.end_ms)
                then least(1, islands.seen_ms / nullif(islands.end_ms - islands.start_ms, 0))
        end as readings_coverage_ratio
    from islands
    inner join held_or_free as spans
        on islands.unit = spans.unit
        and spans.start_ms < islands.end_ms
        and spans.end_ms > islands.start_ms
    left join intermediate.int_job_run_owners as owners using (job_run_key)
    where
        least(islands.end_ms, spans.end_ms) - greatest(islands.start_ms, spans.start_ms)
            >= threshold('gap_list_min_ms')
        and in_window(greatest(islands.start_ms, spans.start_ms), least(islands.end_ms, spans.end_ms))
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

-- a gap has one price in most cases, since prices change at whole hours and seldom
rates as (
    select pieces.piece, places.place, prices.from_ms, prices.to_ms, prices.price_per_gpu_h::double as price_per_gpu_h
    from pieces
    inner join places using (unit)
    inner join intermediate.int_prices as prices
        on places.cluster = prices.cluster
        and coalesce(places.gpu_model, '') = prices.gpu_model
        and coalesce(places.mig_profile, '') = prices.mig_profile
        and pieces.partition = prices.partition
        and pieces.qos = prices.qos
        and pieces.start_ms < prices.to_ms
        and pieces.end_ms > prices.from_ms - 3600000
),

cells as (
    select
        pieces.piece,
        segments.place,
        segments.hour,
        segments.category,
        segments.phase,
        greatest(segments.start_ms, pieces.start_ms) as start_ms,
        least(segments.end_ms, pieces.end_ms) as end_ms,
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
),

by_category as (
    select
        cells.piece,
        cells.category,
        arg_max(cells.place, cells.start_ms) as place,
        min(cells.start_ms) as start_ms,
        max(cells.end_ms) as end_ms,
        arg_max(coalesce(cells.phase, ''), cells.gpu_ms) as phase,
        sum(cells.gpu_ms)::bigint as gpu_ms,
        sum(cells.gpu_ms / 3600000.0 * rates.price_per_gpu_h) as cost
    from cells
    left join rates
        on cells.piece = rates.piece
        and cells.place = rates.place
        and cells.hour * 3600000 >= rates.from_ms
        and cells.hour * 3600000 < rates.to_ms
    group by cells.piece, cells.category
),

ranked as (
    select
        *,
        row_number() over (partition by piece order by gpu_ms desc, category) = 1 as is_main,
        first_value(category) over (partition by piece order by gpu_ms desc, category) as gap_category,
        sum(gpu_ms) over (partition by piece)::bigint as gap_gpu_ms,
        sum(cost) over (partition by piece) as gap_cost
    from by_category
)

select
    left(md5(places.gpu_uuid || places.gpu_instance || pieces.whole_start_ms), 12) as gap_id,
    places.cluster,
    places.node,
    places.gpu_uuid,
    places.gpu_instance,
    places.gpu_index,
    from_ms(pieces.start_ms) as gap_start_at,
    from_ms(pieces.end_ms) as gap_end_at,
    (pieces.end_ms - pieces.start_ms) / 1000.0 as gap_s,
    ranked.gap_gpu_ms,
    ranked.gap_cost,
    ranked.gap_category,
    ranked.is_main,
    from_ms(ranked.start_ms) as start_at,
    from_ms(ranked.end_ms) as end_at,
    pieces.job_run_key is not null as is_held,
    pieces.job_run_key,
    pieces.run_key,
    pieces.run_id,
    pieces.team,
    pieces.user_name,
    ranked.category,
    categories.label,
    categories.colour,
    ranked.category in ('step_unsplit', 'productive', 'at_risk')
        and pieces.end_ms - pieces.start_ms >= threshold('idle_min_ms') as is_beside_work,
    ranked.phase,
    phases.label as phase_label,
    ranked.gpu_ms,
    ranked.cost,
    pieces.readings_coverage_ratio
from ranked
inner join pieces using (piece)
inner join places using (place)
inner join reference.gpu_second_categories as categories using (category)
left join reference.phases as phases using (phase)
