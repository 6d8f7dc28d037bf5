-- Ranks of communicators with their process and host, and their GPU where the source reports it.
-- grain: source, comm_id, rank, node, pid
-- keep: gpu_uuid, gpu_index, seen_at, local_rank, comm_name
-- times: observed seen_at
create table raw.rank_map (
    source varchar not null,
    cluster varchar,
    comm_id varchar not null,           -- '' for the job's world
    comm_name varchar,
    rank integer not null,
    ranks integer,
    node varchar not null,
    pid bigint not null,                -- 0: not said
    local_rank integer,
    gpu_index integer,
    pci_bus_id varchar,
    gpu_uuid varchar,
    seen_at timestamp,                  -- null: the source has no clock (NCCL's INIT lines)
    load_sequence bigint not null       -- state.ingested: the load that wrote the row as it is
);
