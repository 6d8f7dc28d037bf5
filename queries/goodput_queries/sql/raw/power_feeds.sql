-- Capacity of a power feed, by the site's inventory.
-- grain: source, cluster, feed
-- keep: replace
create table raw.power_feeds (
    source varchar not null,
    cluster varchar,                    -- null: in every cluster
    feed varchar not null,              -- as a part of node_racks.feed
    capacity_w double not null,
    server_ratio double,                -- power of a server for each watt of its GPUs; 1: GPUs alone
    note varchar,
    load_sequence bigint not null       -- state.ingested: the load that wrote the row as it is
);
