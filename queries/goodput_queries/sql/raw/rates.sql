-- A price of a GPU-hour for whoever matches, from one whole hour to another.
-- grain: cluster, gpu_model, mig_profile, partition, qos, valid_from_at
-- keep: replace
create table raw.rates (
    source varchar not null,
    cluster varchar,                    -- null matches any, here and below
    gpu_model varchar,
    mig_profile varchar,
    partition varchar,
    qos varchar,
    price_per_gpu_h decimal(18, 6) not null,
    valid_from_at timestamp,            -- null: always
    valid_to_at timestamp,
    currency varchar,                   -- ISO 4217; null: that of the statement
    price_class varchar,                -- on-demand, reserved, spot, or what the site calls it
    note varchar,                       -- where the figure comes from
    load_sequence bigint not null       -- state.ingested: the load that wrote the row as it is
);
