-- One reading of a network port of a node: an Ethernet interface, or a port of an InfiniBand or RoCE adapter.
-- grain: source, cluster, node, kind, device, port, ts
-- times: by ts
create table raw.link_samples (
    source varchar not null,
    cluster varchar,                    -- null: found through the node
    node varchar not null,
    kind varchar not null,              -- ethernet, infiniband
    device varchar not null,            -- eth0; mlx5_0
    port varchar not null,              -- of an adapter; '': an Ethernet interface
    ts timestamp not null,
    rx_bytes bigint,                    -- counter, as all up to link_downs
    tx_bytes bigint,
    rx_errors bigint,
    tx_errors bigint,
    rx_drops bigint,
    tx_drops bigint,
    symbol_errors bigint,               -- InfiniBand
    link_recoveries bigint,             -- InfiniBand: times the link recovered from errors without going down
    link_downs bigint,
    is_up boolean,
    speed_bytes_per_s double,
    load_sequence bigint not null       -- state.ingested: the load that wrote the row as it is
);
