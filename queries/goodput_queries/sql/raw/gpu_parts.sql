-- Parts of GPUs that a job run has on a node: shards (gres/shard) or a percentage of MPS (gres/mps), as squeue and
-- scontrol list them, of the cores that HAMi or Volcano let a pod have, or of the memory that a ResourceClaim consumes.
-- grain: source, cluster, job_id_raw, submit_at, node, kind, gpu_uuid
-- times: observed submit_at
create table raw.gpu_parts (
    source varchar not null,
    cluster varchar not null,
    job_id_raw varchar not null,
    submit_at timestamp not null,
    node varchar not null,
    kind varchar not null,              -- shard, mps (percent)
    amount integer not null,
    gpu_uuid varchar,                   -- null: the source does not say of which GPU
    load_sequence bigint not null       -- state.ingested: the load that wrote the row as it is
);
