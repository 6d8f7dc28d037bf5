-- Ranks of a communicator that were in one state when NCCL RAS was asked.
-- grain: source, comm_id, ts, state
-- times: by ts
create table raw.comm_states (
    source varchar not null,
    cluster varchar,
    comm_id varchar not null,
    comm_ranks integer,
    ts timestamp not null,
    state varchar not null,             -- RUNNING INIT FINALIZE ABORT ERROR; NOCOMM: answers, without the communicator;
                                        -- SILENT: did not answer; DEAD: given up
    rank_count integer not null,
    ranks integer[],                    -- in the communicator; null: RAS named only how many
    load_sequence bigint not null       -- state.ingested: the load that wrote the row as it is
);
