-- Idle gaps by ledger category without any name: what sums of many gaps need, and the numbers of units and job runs by which
-- intermediate.int_idle_gap_amounts finds the names of a few. Gaps of all owners in the scope's place: another team is a
-- filter of these rows.
-- grain: gap, category
-- evaluated: first
-- skip_if_empty: intermediate.int_idle_islands
-- gap: number of the gap, made of the number of its GPU or instance and of its start
-- place: of intermediate.int_numbered_units, that the gap ended at; owner: of intermediate.int_numbered_owners
-- whole_start_ms: start of the gap where the window does not cut it
-- start_ms, end_ms: of the gap; part_start_ms, part_end_ms: of the part
-- phase: detail that the part has most of; '': none
-- the other columns: see marts.idle_gap_parts
-- joined and grouped by numbers: the names of a GPU, its node and its model take several times as long
with units as materialized (
    select distinct unit, gpu_uuid, gpu_instance
    from intermediate.int_numbered_units
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

-- in the order of the alphabet
categories as (
    select category, (row_number() over (order by category))::integer as number from reference.gpu_second_categories
),

-- prices are of kinds of GPUs and terms of jobs, of which there are few
kinds as (
    select cluster, gpu_model, mig_profile, (row_number() over ())::integer as kind
    from (select distinct cluster, gpu_model, mig_profile from intermediate.int_prices)
),

terms as (
    select partition, qos, (row_number() over ())::integer as terms
    from (select distinct partition, qos from intermediate.int_prices)
),

prices as (
    select
        kinds.kind, terms.terms, prices.from_ms // one_hour_ms() as from_hour, prices.to_ms // one_hour_ms() as to_hour,
        prices.price_per_gpu_h::double as price_per_gpu_h
    from intermediate.int_prices as prices
    inner join kinds using (cluster, gpu_model, mig_profile)
    inner join terms using (partition, qos)
),

places as materialized (
    select places.*, kinds.kind
    from intermediate.int_numbered_units as places
    left join kinds
        on places.cluster = kinds.cluster
        and coalesce(places.gpu_model, '') = kinds.gpu_model
        and coalesce(places.mig_profile, '') = kinds.mig_profile
),

owners as materialized (
    select owners.owner, owners.job_run_key, terms.terms
    from intermediate.int_numbered_owners as owners
    left join terms on coalesce(owners.partition, '') = terms.partition and coalesce(owners.qos, '') = terms.qos
),

no_terms as (select any_value(terms) as terms from terms where partition = '' and qos = ''),

holds as (
    select
        units.unit,
        owners.owner,
        case when owners.owner is null then (select terms from no_terms) else owners.terms end as terms,
        holds.start_ms,
        coalesce(holds.end_ms, forever_ms()) as end_ms
    from intermediate.int_holds as holds
    inner join units using (gpu_uuid, gpu_instance)
    left join owners using (job_run_key)
),

-- holds, the time between them, before the first and after the last
held_or_free as (
    select unit, true as is_held, owner, terms, start_ms, end_ms from holds
    union all
    select
        unit,
        false,
        null,
        (select terms from no_terms),
        coalesce(lag(end_ms) over (partition by unit order by start_ms), 0),
        start_ms
    from holds
    union all
    select
        units.unit,
        false,
        null,
        (select terms from no_terms),
        coalesce(max(holds.end_ms), 0),
        forever_ms()
    from units
    left join holds using (unit)
    group by units.unit
),

gaps as materialized (
    select
        islands.unit * 4398046511104
        + greatest(islands.start_ms, spans.start_ms, scope_from_ms()) as gap,
        islands.unit,
        spans.is_held,
        spans.owner,
        spans.terms,
        greatest(islands.start_ms, spans.start_ms) as whole_start_ms,
        greatest(islands.start_ms, spans.start_ms, scope_from_ms()) as start_ms,
        least(
            islands.end_ms, spans.end_ms, scope_to_ms()
        ) as end_ms,
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
    where
        least(islands.end_ms, spans.end_ms) - greatest(islands.start_ms, spans.start_ms)
            >= threshold('gap_list_min_ms')
        and in_window(greatest(islands.start_ms, spans.start_ms), least(islands.end_ms, spans.end_ms))
),

-- segments are cut at hours, so that few of a GPU need to be looked at for a gap in an hour
gap_hours as (
    select gap, unit, terms, start_ms, end_ms, unnest(range(start_ms // one_hour_ms(), (end_ms - 1) // one_hour_ms() + 1)) as hour
    from gaps
),

segments as (
    select
        places.unit, places.place, places.kind, segments.hour_ms // one_hour_ms() as hour, segments.start_ms, segments.end_ms,
        categories.number, segments.phase, segments.share_lo, segments.share_hi, segments.share_of,
        -- a stretch of steps has no number: its categories are amounts
        case when categories.number is null then segments.attempt_key end as attempt_key
    from intermediate.int_ledger_segments as segments
    left join categories using (category)
    inner join places
        on segments.gpu_uuid = places.gpu_uuid
        and segments.gpu_instance = places.gpu_instance
        and segments.start_ms >= places.start_ms
        and segments.start_ms < places.end_ms
    where
        in_place(segments.cluster, segments.node, segments.gpu_uuid, segments.gpu_model)
        and segments.hour_ms > scope_from_ms() - one_hour_ms()
        and segments.hour_ms < scope_to_ms()
),

parts as (
    select
        gaps.gap,
        gaps.terms,
        segments.* exclude (unit) replace (
            greatest(segments.start_ms, gaps.start_ms) as start_ms, least(segments.end_ms, gaps.end_ms) as end_ms
        )
    from gap_hours as gaps
    inner join segments
        on gaps.unit = segments.unit
        and gaps.hour = segments.hour
        and segments.start_ms < gaps.end_ms
        and segments.end_ms > gaps.start_ms
),

stepping as (
    select
        parts.* exclude (number), parts.hour * one_hour_ms() as hour_ms, 'stepping' as category,
        places.gpu_uuid, places.gpu_instance
    from parts
    inner join places using (place)
    where parts.attempt_key is not null
),

cells as (
    select
        gap, terms, place, kind, hour, number, phase, start_ms, end_ms,
        share_ms(start_ms, end_ms, share_lo, share_hi, share_of) as gpu_ms
    from parts
    where attempt_key is null
    union all
    select
        amounts.gap, amounts.terms, amounts.place, amounts.kind, amounts.hour, categories.number, amounts.phase,
        amounts.first_ms, amounts.last_ms, amounts.gpu_ms
    from ledger_of('stepping') as amounts
    inner join categories using (category)
),

by_category as materialized (
    select
        cells.gap,
        cells.number,
        arg_max(cells.place, cells.start_ms) as place,
        min(cells.start_ms) as part_start_ms,
        max(cells.end_ms) as part_end_ms,
        -- what is a pause at first is idle when it goes on
        arg_max(coalesce(cells.phase, ''), cells.gpu_ms + case when cells.phase = 'pause' then 0 else one_day_ms() end) as phase,
        sum(cells.gpu_ms)::bigint as gpu_ms,
        sum(cells.gpu_ms / 3600000.0 * prices.price_per_gpu_h) as cost
    from cells
    left join prices
        on cells.kind = prices.kind
        and cells.terms = prices.terms
        and cells.hour >= prices.from_hour
        and cells.hour < prices.to_hour
    group by cells.gap, cells.number
),

sums as (
    select
        gap,
        -- of parts of the same length the first in the alphabet
        999 - max(gpu_ms * 1000 + 999 - number) % 1000 as main_number,
        sum(gpu_ms)::bigint as gap_gpu_ms,
        sum(cost) as gap_cost
    from by_category
    group by gap
)

select
    by_category.gap,
    names.of_numbers[by_category.number] as category,
    by_category.* exclude (gap, number),
    by_category.number = sums.main_number as is_main,
    sums.gap_gpu_ms,
    sums.gap_cost,
    gaps.* exclude (gap, unit, terms),
    category in ('step_unsplit', 'productive', 'at_risk')
        and gaps.end_ms - gaps.start_ms >= threshold('idle_min_ms') as is_beside_work
from by_category
inner join sums using (gap)
inner join gaps using (gap)
-- looked up: a join takes three times as long
cross join (select list(category order by number) as of_numbers from categories) as names
