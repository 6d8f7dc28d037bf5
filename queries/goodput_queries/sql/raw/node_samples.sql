-- One reading of a node.
-- grain: source, node, ts
-- time: ts
-- observed: ts
create table raw.node_samples (
    source varchar not null,
    node varchar not null,
    ts timestamp not null,
    cpu_busy_s double,                  -- counter, all cores
    cpu_total_s double,                 -- counter, all cores
    load1 double,
    memory_total_bytes bigint,
    memory_available_bytes bigint,
    page_cache_bytes bigint,
    dirty_bytes bigint,
    disk_read_bytes bigint,             -- counter
    disk_write_bytes bigint,            -- counter
    power_w double,
    load_sequence bigint not null       -- state.ingested: the load that wrote the row as it is
);
