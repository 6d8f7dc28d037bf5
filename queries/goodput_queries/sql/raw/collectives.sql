-- One NCCL operation of one rank, from the NCCL Inspector.
-- grain: source, node, pid, comm_id, rank, operation, sequence_number, dumped_at
-- times: by dumped_at; observed started_at, kernel_start_at, kernel_stop_at
create table raw.collectives (
    source varchar not null,
    cluster varchar,
    node varchar not null,
    pid bigint not null,
    comm_id varchar not null,           -- hash, same on every rank, new after every restart
    comm_name varchar,
    rank integer not null,              -- in this communicator
    ranks integer not null,
    nodes integer,
    operation varchar not null,         -- AllReduce ...; Send, Recv
    is_p2p boolean not null,
    peer integer,
    sequence_number bigint not null,    -- counts per operation (p2p: all p2p) of the communicator
    message_bytes bigint,               -- put right where the plugin wrote 2^64 minus it
    exec_time_s double not null,
    timing_source varchar,
    algbw_bytes_per_s double,
    busbw_bytes_per_s double,
    dumped_at timestamp not null,       -- when the line was written, not when the operation ran
    started_at timestamp,               -- handed to NCCL on the host; verbose records only
    kernel_start_at timestamp,          -- first channel's start as the proxy noticed it
    kernel_stop_at timestamp,
    channels integer,
    plugin_version varchar,
    load_sequence bigint not null       -- state.ingested: the load that wrote the row as it is
);
