-- Electricity tariffs by hours of the day, with whole validity.
-- grain: none (a tariff of a cluster, or a later one, takes precedence)
-- cluster: null: any
select
    cluster,
    zone,
    from_hour,
    to_hour,
    price_per_kwh,
    pue,
    server_ratio,
    coalesce(to_ms(valid_from_at), 0) as from_ms,
    coalesce(to_ms(valid_to_at), forever_ms()) as to_ms
from raw.tariffs
