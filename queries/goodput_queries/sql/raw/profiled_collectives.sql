-- One NCCL kernel in a PyTorch profiler (Kineto) trace of one rank.
-- grain: source, trace_id, rank, device, stream, start_at, kernel
-- times: by start_at
create table raw.profiled_collectives (
    source varchar not null,
    cluster varchar,
    trace_id varchar not null,          -- the profiler's, else of the content
    rank integer,                       -- global; null: not distributed
    ranks_total integer,                -- of the job
    pid bigint,                         -- of the host process; null: unknown
    device integer not null,            -- CUDA's number in the process
    stream bigint not null,
    start_at timestamp not null,
    duration_s double not null,         -- the wait for late ranks inside
    exposed_s double not null,          -- of it, while no other kernel ran on the device
    kernel varchar not null,            -- ncclDevKernel_...
    operation varchar,                  -- as PyTorch calls it: _allgather_base; null: not recorded
    group_name varchar,
    group_description varchar,
    ranks integer,                      -- of the group
    sequence_number bigint,             -- PyTorch's, where the trace has it
    place bigint not null,              -- of this kernel among those of its group in the trace, from 0
    dtype varchar,
    in_elements bigint,
    out_elements bigint,
    message_bytes bigint,               -- the larger side
    load_sequence bigint not null       -- state.ingested: the load that wrote the row as it is
);
