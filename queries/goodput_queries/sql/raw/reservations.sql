-- A reservation of nodes for a time.
-- grain: source, cluster, name, start_at
-- keep: nodes is not null, is_ended, end_at
-- times: planned start_at, end_at
create table raw.reservations (
    source varchar not null,
    cluster varchar,
    name varchar not null,
    nodes varchar[],                    -- null: the source does not say which
    owner varchar,                      -- accounts or users
    flags varchar,                      -- MAINT makes it maintenance
    start_at timestamp not null,
    end_at timestamp,
    load_sequence bigint not null,      -- state.ingested: the load that wrote the row as it is
    is_ended boolean                    -- true: it ended at end_at, even if it was to end later
);
