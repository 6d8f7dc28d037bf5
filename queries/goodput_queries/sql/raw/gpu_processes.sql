-- Number of processes with a context on a GPU; 0 is measured, no row is unknown.
-- grain: source, gpu_uuid, ts
-- times: by ts
create table raw.gpu_processes (
    source varchar not null,
    gpu_uuid varchar not null,
    ts timestamp not null,
    processes integer not null,
    pids bigint[],
    load_sequence bigint not null       -- state.ingested: the load that wrote the row as it is
);
