-- GPU time of the scope by category and cause (blame), categories without time included.
-- grain: category, blame
-- evaluated: first
-- access: team
-- blame: own, platform, use, unallocated, reservation, unsettled
-- gpu_ms: milliseconds of a whole GPU; the rows add up to the capacity of the scope
-- cost: null where no part of it has a price
with sums as (
    select category, blame, sum(gpu_ms)::bigint as gpu_ms, sum(cost) as cost
    from marts.ledger_blamed_by_node
    group by category, blame
)

select
    categories.category,
    categories.group,
    coalesce(sums.blame, blame_of(categories.category, categories.blame, null, null)) as blame,
    coalesce(sums.gpu_ms, 0) as gpu_ms,
    sums.cost
from reference.gpu_second_categories as categories
left join sums using (category)
