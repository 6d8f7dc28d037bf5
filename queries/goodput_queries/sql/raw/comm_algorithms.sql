-- An algorithm and protocol that a process chose for operations of one size, by NCCL's own log (subsystem TUNING).
-- grain: source, cluster, node, pid, operation, message_bytes, algorithm, protocol
-- keep: channels
create table raw.comm_algorithms (
    source varchar not null,
    cluster varchar,
    node varchar not null,
    pid bigint not null,                -- as a rule rank 0 of the communicator: the others do not log it
    operation varchar not null,         -- AllReduce ...
    message_bytes bigint not null,      -- as the Inspector counts it
    algorithm varchar not null,         -- RING, TREE, NVLS, NVLSTREE, COLLNET_DIRECT, PAT ...
    protocol varchar not null,          -- LL, LL128, SIMPLE
    channels integer,
    load_sequence bigint not null       -- state.ingested: the load that wrote the row as it is
);
