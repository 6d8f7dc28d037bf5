-- Processes that had a context on a GPU, as /proc of their node describes them.
-- grain: source, cluster, node, pid, start_at
-- keep: last_seen_at
-- times: observed start_at, last_seen_at, gone_at
create table raw.processes (
    source varchar not null,
    cluster varchar,                    -- null: found through the node
    node varchar not null,
    pid bigint not null,
    start_at timestamp not null,
    user_name varchar,
    process_name varchar,               -- short: the script, else the program
    command varchar,                    -- without what looks like a secret
    job_id varchar,                     -- of Slurm, by its cgroup or SLURM_JOB_ID
    pod_uid varchar,                    -- of Kubernetes, by its cgroup
    container varchar,                  -- its id, by its cgroup
    last_seen_at timestamp not null,
    gone_at timestamp,                  -- the first look that did not find it; null: it lived
    load_sequence bigint not null       -- state.ingested: the load that wrote the row as it is
);
