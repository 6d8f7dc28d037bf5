-- The ledger of the scope with prices, in two grains: by GPU and by node. Query ledger_scoped for the first,
-- ledger_scoped_by_node for the second.
-- grain: none (parts of hours)
-- access: team
-- is_by_node: the row's grain is the node
-- gpu_uuid, gpu_instance: null in the hours summed up by node
-- gpu_ms: milliseconds of a whole GPU
-- cost: null where the rate card has no price
select
    owned.*,
    prices.price_per_gpu_h,
    owned.gpu_ms / 3600000.0 * prices.price_per_gpu_h::double as cost
from marts.ledger_owned as owned
left join intermediate.int_prices as prices
    on owned.cluster = prices.cluster
    and coalesce(owned.gpu_model, '') = prices.gpu_model
    and coalesce(owned.mig_profile, '') = prices.mig_profile
    and coalesce(owned.partition, '') = prices.partition
    and coalesce(owned.qos, '') = prices.qos
    and owned.hour_ms >= prices.from_ms
    and owned.hour_ms < prices.to_ms
