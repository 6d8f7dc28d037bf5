-- What a job of GPUs asked of nodes, and why it waited, as listings of the controller show it: of those in ten minutes with
-- one reason the last.
-- grain: source, cluster, job_id_raw, submit_at, period_at, reason
-- keep: observed_at
-- times: observed submit_at, observed_at; planned period_at
create table raw.job_requests (
    source varchar not null,
    cluster varchar not null,
    job_id_raw varchar not null,
    submit_at timestamp not null,
    period_at timestamp,                -- the ten minutes of the listing
    observed_at timestamp,              -- null: it is not known when the listing was made
    reason varchar,                     -- why it waited; null: it did not
    requested_nodes varchar[],          -- it runs on these, on others only where it asks for more nodes than it names
    excluded_nodes varchar[],
    feature_sets varchar[],             -- a node needs all features of one of them: 'a&b'
    nodes_requested integer,
    load_sequence bigint not null       -- state.ingested: the load that wrote the row as it is
);
