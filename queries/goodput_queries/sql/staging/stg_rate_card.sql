-- Prices of a GPU-hour, and factors on them, with whole validity.
-- grain: none (rows of equal rank are settled by int_prices)
-- cluster, gpu_model, mig_profile, partition, qos: null: any
-- price_class: on-demand, reserved, spot, or what the site calls it
-- amount: the price or the factor
with cards as (
    select *, price_per_gpu_h as amount, true as is_price from raw.rates
    union all by name
    select *, factor as amount, false as is_price from raw.rate_factors
)

select
    cluster,
    gpu_model,
    mig_profile,
    partition,
    qos,
    price_class,
    is_price,
    amount::decimal(18, 6) as amount,
    coalesce(to_ms(valid_from_at), 0) as from_ms,
    coalesce(to_ms(valid_to_at), forever_ms()) as to_ms
from cards
