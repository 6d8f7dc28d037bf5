-- Settings of nodes and of processes on them, as snapshots have them.
-- grain: source, cluster, node, ts, run_id, setting
-- keep: replace
-- times: by ts
create table raw.node_settings (
    source varchar not null,
    cluster varchar,                    -- null: found through the node
    node varchar not null,
    ts timestamp not null,
    run_id varchar not null,            -- of the process, as it calls itself; '' none
    setting varchar not null,
    value varchar,                      -- null: unknown
    unknown_because varchar,
    belongs_to varchar not null,        -- node; host: of the node, seen from outside of containers; process
    load_sequence bigint not null       -- state.ingested: the load that wrote the row as it is
);
