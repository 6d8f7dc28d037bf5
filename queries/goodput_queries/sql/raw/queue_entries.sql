-- A wait of a job in a queue of Kueue (Workload) or Volcano (PodGroup), before and while it has pods.
-- grain: source, cluster, uid, since_at
-- keep: until_at is not null, observed_at
-- times: observed since_at, until_at, observed_at
create table raw.queue_entries (
    source varchar not null,
    cluster varchar not null,
    uid varchar not null,               -- of the object
    since_at timestamp not null,        -- made, or evicted; as until_at: only the end of the wait is known
    until_at timestamp,                 -- admitted, or gone; null: it waits
    is_admitted boolean not null,       -- false with an end: it has gone
    kind varchar not null,              -- Workload, PodGroup
    job_id_raw varchar not null,        -- '<namespace>/<name>' of the job, as raw.job_runs has it
    account varchar not null,           -- namespace
    queue varchar,                      -- LocalQueue, or queue of Volcano
    cluster_queue varchar,
    qos varchar,                        -- priority class
    gpus integer not null,              -- requested
    gpu_type varchar,                   -- MIG profile; null: whole GPUs or a mixture
    min_pods integer,                   -- it starts with as many
    reason varchar,                     -- why it waits
    message varchar,                    -- the same in the queue's own words
    evictions integer,
    eviction_reason varchar,            -- of the last one, with its message
    observed_at timestamp,              -- when it was listed
    load_sequence bigint not null       -- state.ingested: the load that wrote the row as it is
);
