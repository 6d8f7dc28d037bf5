-- Progress of one rank in one process group at the dump of its Flight Recorder.
-- grain: source, dump_set, rank, group_name, last_moment_at
-- times: observed last_moment_at
create table raw.flight_groups (
    source varchar not null,
    cluster varchar,
    dump_set varchar not null,          -- as in raw.flight_records
    rank integer not null,
    group_name varchar not null,
    group_description varchar,
    ranks integer[],                    -- global ranks of the group; null: the dump does not say
    last_enqueued bigint,               -- sequence numbers; null: none yet, or the dump does not say
    last_started bigint,
    last_completed bigint,
    last_moment_at timestamp,           -- latest time in the dump: it does not record when it was written;
                                        -- null: it holds no entry
    nccl_version varchar,
    load_sequence bigint not null       -- state.ingested: the load that wrote the row as it is
);
