-- Milliseconds that two times have in common; below 0: how far they are apart.
create or replace macro overlap_ms(start_ms, end_ms, from_ms, to_ms) as (
    least(end_ms, to_ms) - greatest(start_ms, from_ms)
);

-- Mean price of time: the sum of milliseconds times their price over those that have one; unknown where more than a
-- thousandth of all_ms has none.
create or replace macro mean_price(ms_price, priced_ms, all_ms) as (
    case when priced_ms > 0.999 * all_ms then ms_price / priced_ms end
);

-- Whether a price, a row of int_prices, holds at any time in [first_ms, last_ms) for what is of these; of what is null any
-- price holds that does not ask for it.
create or replace macro is_price_of(price, of_cluster, model, profile, of_partition, of_qos, first_ms, last_ms) as (
    of_cluster = price.cluster
    and coalesce(model, '') = price.gpu_model
    and coalesce(profile, '') = price.mig_profile
    and coalesce(of_partition, '') = price.partition
    and coalesce(of_qos, '') = price.qos
    and first_ms < price.to_ms
    and last_ms > price.from_ms
);

-- Rows of marts.ledger_owned with their prices. cost: null where the rate card has no price.
-- ledger: name of a relation with these rows
create or replace macro priced(ledger) as table (
    select
        owned.*,
        prices.price_per_gpu_h,
        owned.gpu_ms / 3600000.0 * prices.price_per_gpu_h::double as cost
    from query_table(ledger) as owned
    left join intermediate.int_prices as prices on is_price_of(
        prices, owned.cluster, owned.gpu_model, owned.mig_profile, owned.partition, owned.qos,
        owned.hour_ms, owned.hour_ms + 1
    )
);
