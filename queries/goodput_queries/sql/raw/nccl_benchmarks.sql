-- One size of one run of nccl-tests, in place or out of place.
-- grain: source, benchmark_id, operation, size_bytes, dtype, reduction, root, is_in_place, repeat
-- times: observed started_at
create table raw.nccl_benchmarks (
    source varchar not null,
    cluster varchar,
    benchmark_id varchar not null,      -- of this run: digest of its devices, settings and results
    operation varchar not null,         -- AllReduce ...; '' where the output does not say
    size_bytes bigint not null,         -- as nccl-tests counts: of AllGather and the like over all ranks
    elements bigint,
    dtype varchar not null,
    reduction varchar not null,         -- sum ...; none
    root integer not null,              -- -1: none
    is_in_place boolean not null,
    repeat integer not null,            -- the same row again in one run, from 0
    time_s double,
    is_cpu_time boolean not null,       -- -C: time on the host
    algbw_bytes_per_s double,
    busbw_bytes_per_s double,
    wrong bigint,                       -- values; null: not checked
    ranks integer,
    nodes varchar[],                    -- hosts that took part
    gpu_model varchar,                  -- null: several
    nccl_version varchar,
    started_at timestamp,               -- null: the output does not say
    load_sequence bigint not null       -- state.ingested: the load that wrote the row as it is
);
