-- Cost of a GPU-hour by model: the rate, and the effective cost per allocated and per productive GPU-hour.
-- grain: gpu_model
-- access: team
-- price_per_gpu_h: of capacity, mean over the window
-- cost_per_allocated_gpu_h: all cost of the model / allocated GPU time
-- cost_per_productive_gpu_h: all cost / useful time (the headline's numerator)
-- definition_version: of goodput; see macros/ratios.sql
-- unpriced_gpu_ms: time left out of the money, since the rate card has no price for it
with sums as (
    select
        gpu_model,
        sum(gpu_ms)::bigint as capacity_ms,
        coalesce(sum(gpu_ms) filter (where categories.group = 'held'), 0)::bigint as held_ms,
        coalesce(sum(gpu_ms) filter (where is_useful(category)), 0)::bigint as goodput_ms,
        sum(gpu_ms) filter (where cost is not null) as priced_ms,
        sum(cost) as cost
    from marts.ledger_scoped_by_node
    inner join reference.gpu_second_categories as categories using (category)
    group by gpu_model
)

select
    gpu_model,
    definition_version() as definition_version,
    * exclude (gpu_model, priced_ms),
    cost / nullif(priced_ms, 0) * one_hour_ms() as price_per_gpu_h,
    case when priced_ms = capacity_ms then cost / nullif(held_ms, 0) * one_hour_ms() end as cost_per_allocated_gpu_h,
    case when priced_ms = capacity_ms then cost / nullif(goodput_ms, 0) * one_hour_ms() end as cost_per_productive_gpu_h,
    capacity_ms - coalesce(priced_ms, 0)::bigint as unpriced_gpu_ms
from sums
