-- Resources and partitions of a node: input of stranded GPUs.
-- grain: source, cluster, node
-- keep: observed_at
-- times: observed observed_at
create table raw.nodes (
    source varchar not null,
    cluster varchar,
    node varchar not null,
    cpus integer,
    memory_bytes bigint,
    gpus integer,                       -- configured GPUs (MIG instances count each)
    gres varchar,                       -- as printed
    partitions varchar[],
    features varchar[],                 -- that are active; null: the listing does not say
    gpus_used integer,                  -- of GresUsed, when it was observed
    used_indices integer[],             -- their Slurm indices; null: not listed
    observed_at timestamp,
    load_sequence bigint not null       -- state.ingested: the load that wrote the row as it is
);
