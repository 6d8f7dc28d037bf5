-- Milliseconds that two times have in common; below 0: how far they are apart.
create or replace macro overlap_ms(start_ms, end_ms, from_ms, to_ms) as (
    least(end_ms, to_ms) - greatest(start_ms, from_ms)
);

-- Mean price of time: the sum of milliseconds times their price over those that have one; unknown where more than a
-- thousandth of all_ms has none.
create or replace macro mean_price(ms_price, priced_ms, all_ms) as (
    case when priced_ms > 0.999 * all_ms then ms_price / priced_ms end
);

-- Rows of marts.ledger_owned with their prices. cost: null where the rate card has no price.
-- ledger: name of a relation with these rows
create or replace macro priced(ledger) as table (
    select
        owned.* exclude (is_by_node),
        prices.price_per_gpu_h,
        owned.gpu_ms / 3600000.0 * prices.price_per_gpu_h::double as cost
    from query_table(ledger) as owned
    left join intermediate.int_prices as prices
        on owned.cluster = prices.cluster
        and coalesce(owned.gpu_model, '') = prices.gpu_model
        and coalesce(owned.mig_profile, '') = prices.mig_profile
        and coalesce(owned.partition, '') = prices.partition
        and coalesce(owned.qos, '') = prices.qos
        and owned.hour_ms >= prices.from_ms
        and owned.hour_ms < prices.to_ms
);
