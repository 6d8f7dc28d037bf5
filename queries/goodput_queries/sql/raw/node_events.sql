-- Something that happened on a node, as its kernel logs it: a process that the out-of-memory killer ended.
-- grain: source, cluster, node, ts, kind, pid, message
-- times: by ts
create table raw.node_events (
    source varchar not null,
    cluster varchar,
    node varchar not null,
    ts timestamp not null,
    kind varchar not null,              -- oom_kill
    pid varchar,
    process_name varchar,
    message varchar,
    load_sequence bigint not null       -- state.ingested: the load that wrote the row as it is
);
