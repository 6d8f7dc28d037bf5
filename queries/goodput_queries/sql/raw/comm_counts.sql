-- Ranks of a communicator that had launched equally many operations of a kind when NCCL RAS was asked.
-- An operation that no rank has launched has no row.
-- grain: source, comm_id, ts, operation, launched
-- times: by ts
create table raw.comm_counts (
    source varchar not null,
    cluster varchar,
    comm_id varchar not null,           -- hash as the Inspector writes it, 0x...
    comm_ranks integer,                 -- size of the communicator
    ts timestamp not null,
    operation varchar not null,         -- AllReduce ...
    launched bigint not null,
    rank_count integer not null,
    ranks integer[],                    -- in the communicator; null: RAS named only how many
    load_sequence bigint not null       -- state.ingested: the load that wrote the row as it is
);
