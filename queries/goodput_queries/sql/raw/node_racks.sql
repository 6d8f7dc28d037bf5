-- Where a node stands, by the site's inventory.
-- grain: source, cluster, node
-- keep: replace
create table raw.node_racks (
    source varchar not null,
    cluster varchar,                    -- null: found through the node
    node varchar not null,
    rack varchar not null,
    rack_row varchar,                   -- row of racks in the hall
    feed varchar,                       -- power feed, or the pair of feeds
    load_sequence bigint not null       -- state.ingested: the load that wrote the row as it is
);
