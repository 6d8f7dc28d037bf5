-- What a kWh costs, for some hours of the day, and what a GPU's energy makes of it at the meter.
-- grain: cluster, zone, from_hour, to_hour, valid_from_at
-- keep: replace
create table raw.tariffs (
    source varchar not null,
    cluster varchar,                    -- null matches any
    zone varchar not null,              -- IANA name: whose hours of the day
    from_hour tinyint not null,         -- 0 to 23
    to_hour tinyint not null,           -- 1 to 24, exclusive; up to from_hour: over midnight
    price_per_kwh decimal(18, 6) not null,
    pue decimal(9, 6) not null,         -- energy of the site / of its computers
    server_ratio decimal(9, 6) not null, -- energy of a server / of its GPUs
    valid_from_at timestamp,            -- null: always
    valid_to_at timestamp,
    currency varchar,                   -- ISO 4217; null: that of the statement
    note varchar,
    load_sequence bigint not null       -- state.ingested: the load that wrote the row as it is
);
