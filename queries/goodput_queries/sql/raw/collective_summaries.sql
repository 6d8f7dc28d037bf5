-- NCCL operations of one GPU, kind and size over one window of the Inspector's Prometheus mode: means, no counts.
-- grain: source, node, gpu_uuid, gpu_label, ts, job_id, comm_name, ranks, operation, size_from_bytes, algorithm, protocol
-- times: by ts
create table raw.collective_summaries (
    source varchar not null,
    cluster varchar,
    node varchar not null,
    gpu_uuid varchar,                   -- from the file's name; null: it has none
    gpu_label varchar,                  -- CUDA's number in the process: with one visible GPU always GPU0
    ts timestamp not null,              -- when the file was written: the end of the window
    job_id varchar,                     -- Slurm's, where the job ran in Slurm
    comm_name varchar,
    nodes integer,
    ranks integer,
    operation varchar not null,
    is_p2p boolean not null,
    size_from_bytes bigint,             -- bucket of message sizes, one unit wide in steps of 1024
    size_to_bytes bigint,
    algorithm varchar,                  -- RING, TREE, NVLS ...; NCCL 2.30 and later
    protocol varchar,                   -- SIMPLE, LL, LL128
    busbw_bytes_per_s double,           -- geometric mean
    exec_time_s double,                 -- arithmetic mean
    load_sequence bigint not null       -- state.ingested: the load that wrote the row as it is
);
