-- Carbon intensity of the electricity of a site over time, and what a GPU's energy makes of it at the meter.
-- grain: cluster, valid_from_at
-- keep: replace
create table raw.carbon (
    source varchar not null,
    cluster varchar,                    -- null matches any
    valid_from_at timestamp,            -- null: always
    valid_to_at timestamp,              -- exclusive
    g_per_kwh decimal(18, 6) not null,  -- grams of CO2 equivalent
    carbon_free_ratio decimal(9, 6),    -- share of the electricity from carbon-free sources; null: not known
    pue decimal(9, 6) not null,         -- energy of the site / of its computers
    server_ratio decimal(9, 6) not null, -- energy of a server / of its GPUs
    note varchar,
    load_sequence bigint not null       -- state.ingested: the load that wrote the row as it is
);
