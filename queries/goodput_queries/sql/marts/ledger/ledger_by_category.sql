-- GPU time of the scope by category, categories without time included.
-- grain: category
-- evaluated: first
-- access: team
-- kind: goodput, badput, ...; declared work is goodput where evaluation counts
-- definition_version: of goodput; see macros/ratios.sql
-- gpu_ms: milliseconds of a whole GPU; the rows add up to the capacity of the scope
-- gpu_hi_ms: upper bound: with all unclassified time that might belong to the category
-- share_ratio: of the scope's capacity
-- cost: null where no part of it has a price
-- unpriced_gpu_ms: GPU time that the rate card has no price for
with sums as (
    select
        category,
        sum(gpu_ms)::bigint as gpu_ms,
        sum(cost) as cost,
        coalesce(sum(gpu_ms) filter (where cost is null), 0)::bigint as unpriced_gpu_ms
    from marts.ledger_scoped_by_node
    group by category
),

totals as (
    select
        sum(gpu_ms)::bigint as capacity_ms,
        coalesce(sum(gpu_ms) filter (where category in ('unknown', 'busy_unclassified', 'at_risk')), 0)::bigint
            as unsettled_ms,
        coalesce(sum(gpu_ms) filter (where category = 'step_unsplit'), 0)::bigint as unsplit_ms
    from sums
)

select
    categories.* exclude (kind, precedence),
    kind_of(categories.category, categories.kind) as kind,
    definition_version() as definition_version,
    coalesce(sums.gpu_ms, 0) as gpu_ms,
    coalesce(sums.gpu_ms, 0) + case
        when categories.group <> 'held' or categories.category in ('unknown', 'busy_unclassified', 'at_risk')
            then 0
        when categories.category in ('throttled', 'straggler_wait', 'exposed_comm', 'productive')
            then totals.unsettled_ms + totals.unsplit_ms
        else totals.unsettled_ms
    end as gpu_hi_ms,
    coalesce(sums.gpu_ms, 0) / nullif(totals.capacity_ms, 0) as share_ratio,
    sums.cost,
    coalesce(sums.unpriced_gpu_ms, 0) as unpriced_gpu_ms
from reference.gpu_second_categories as categories
cross join totals
left join sums using (category)
