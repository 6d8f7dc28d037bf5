-- A node in a state for a time. A row of node '*' says: the scheduler watched the whole cluster then,
-- so that a node without another row was up.
-- grain: source, cluster, node, state, start_at
-- keep: end_at is not null, end_at
-- times: by start_at; observed end_at
create table raw.node_states (
    source varchar not null,
    cluster varchar,
    node varchar not null,
    state varchar not null,             -- up, down, drained, maintenance, powered_off, planned
    state_raw varchar,                  -- as printed
    start_at timestamp not null,
    end_at timestamp,                   -- null: still so
    reason varchar,
    user_name varchar,
    load_sequence bigint not null       -- state.ingested: the load that wrote the row as it is
);
