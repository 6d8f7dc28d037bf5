-- One reading of a node.
-- grain: source, cluster, node, ts
-- times: by ts
create table raw.node_samples (
    source varchar not null,
    cluster varchar,                    -- null: found through the node
    node varchar not null,
    ts timestamp not null,
    cpu_busy_s double,                  -- counter, all cores: neither idle nor waiting for disks
    cpu_iowait_s double,                -- counter, all cores: idle, waiting for disks
    cpu_steal_s double,                 -- counter, all cores: of cpu_busy_s, what the hypervisor took
    cpu_total_s double,                 -- counter, all cores
    load1 double,
    memory_total_bytes bigint,
    memory_available_bytes bigint,
    page_cache_bytes bigint,
    dirty_bytes bigint,
    swap_total_bytes bigint,
    swap_free_bytes bigint,
    disk_read_bytes bigint,             -- counter, whole disks
    disk_write_bytes bigint,            -- counter, whole disks
    disk_reads bigint,                  -- counter, whole disks: read operations that were completed
    disk_busy_s double,                 -- counter, whole disks: time with an operation in progress
    tcp_sent_segments bigint,           -- counter
    tcp_retransmitted_segments bigint,  -- counter
    power_w double,
    load_sequence bigint not null       -- state.ingested: the load that wrote the row as it is
);
