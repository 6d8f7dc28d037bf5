-- Parts of GPUs that a job run has on a node: shards (gres/shard) or a percentage of MPS (gres/mps), as squeue and
-- scontrol list them, or of the cores that HAMi or Volcano let a pod have.
-- grain: source, cluster, job_id_raw, submit_at, node, kind
-- times: observed submit_at
create table raw.gpu_parts (
    source varchar not null,
    cluster varchar not null,
    job_id_raw varchar not null,
    submit_at timestamp not null,
    node varchar not null,
    kind varchar not null,              -- shard, mps (percent)
    amount integer not null,
    load_sequence bigint not null       -- state.ingested: the load that wrote the row as it is
);
