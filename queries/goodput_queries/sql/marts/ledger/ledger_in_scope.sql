-- The ledger of the scope with prices, twice over: GPU by GPU, and with the GPUs of each node summed up. Ask
-- ledger_scoped for the one, ledger_scoped_by_node for the other.
-- grain: none (parts of hours)
-- is_by_node: of which of the two the row is
-- gpu_uuid, gpu_instance: null in the hours summed up by node
-- gpu_ms: milliseconds of a whole GPU
-- usd: null where the rate card has no price
select
    owned.*,
    prices.usd_per_gpu_h,
    owned.gpu_ms / 3600000.0 * prices.usd_per_gpu_h::double as usd
from marts.ledger_owned as owned
left join intermediate.int_prices as prices
    on owned.cluster = prices.cluster
    and coalesce(owned.gpu_model, '') = prices.gpu_model
    and coalesce(owned.mig_profile, '') = prices.mig_profile
    and coalesce(owned.partition, '') = prices.partition
    and coalesce(owned.qos, '') = prices.qos
    and owned.hour_ms >= prices.from_ms
    and owned.hour_ms < prices.to_ms
