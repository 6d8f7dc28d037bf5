-- A factor on the price of a GPU-hour for whoever matches (a discount, a QOS's usage factor), from one whole
-- hour to another. All that match multiply.
-- grain: cluster, gpu_model, mig_profile, partition, qos, valid_from_at
-- keep: replace
create table raw.rate_factors (
    source varchar not null,
    cluster varchar,                    -- null matches any, here and below
    gpu_model varchar,
    mig_profile varchar,
    partition varchar,
    qos varchar,
    factor decimal(18, 6) not null,
    valid_from_at timestamp,            -- null: always
    valid_to_at timestamp,
    price_class varchar,                -- on-demand, reserved, spot, or what the site calls it
    note varchar,
    load_sequence bigint not null       -- state.ingested: the load that wrote the row as it is
);
