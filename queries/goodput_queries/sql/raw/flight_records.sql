-- One operation of one rank as PyTorch's Flight Recorder had it when it was dumped: the last ones of a ring.
-- grain: source, dump_set, rank, record_id, created_at
-- keep: discovered_completed_at, discovered_started_at
-- times: by created_at; observed discovered_started_at, discovered_completed_at
create table raw.flight_records (
    source varchar not null,
    cluster varchar,
    dump_set varchar not null,          -- folders and name of the dumps less the rank: what one gang wrote
    rank integer not null,              -- global, from the file's name: the dump does not say it
    group_name varchar not null,        -- process group; the same name on every rank of the gang
    group_description varchar,
    record_id bigint not null,          -- counts in the process
    sequence_number bigint,             -- counts all collectives of the group together
    p2p_sequence_number bigint,
    operation varchar not null,         -- all_reduce ..., send 0->1
    is_p2p boolean not null,
    state varchar not null,             -- scheduled, started, completed
    created_at timestamp not null,      -- near the enqueue
    duration_s double,                  -- only with TORCH_NCCL_ENABLE_TIMING and once retired
    discovered_started_at timestamp,    -- when the watchdog looked, always late
    discovered_completed_at timestamp,
    is_retired boolean,
    timeout_s double,
    input_dtype varchar,
    input_elements bigint,              -- over all tensors
    message_bytes bigint,               -- of the input; null where the type is not known
    thread_name varchar,
    called_from varchar,                -- innermost frame; pickle only
    load_sequence bigint not null       -- state.ingested: the load that wrote the row as it is
);
