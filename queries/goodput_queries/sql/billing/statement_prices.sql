-- The prices that a day was charged with when it closed: they hold for its hours whatever the rate card says
-- later. Empty texts stand for none, as in intermediate.int_prices.
-- grain: cluster, gpu_model, mig_profile, partition, qos, from_at
create table billing.statement_prices (
    source varchar not null,
    cluster varchar not null,
    gpu_model varchar not null,
    mig_profile varchar not null,
    partition varchar not null,
    qos varchar not null,
    from_at timestamp not null,         -- whole hours
    to_at timestamp not null,
    list_price_per_gpu_h decimal(18, 6) not null,
    factor decimal(18, 6) not null,
    price_per_gpu_h decimal(18, 6) not null
);
