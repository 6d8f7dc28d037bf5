-- A MIG instance of a GPU: a part of it with a weight.
-- grain: source, cluster, gpu_uuid, gpu_instance, valid_from_at
-- keep: valid_to_at
-- holds_of: source, cluster, gpu_uuid
create table raw.gpu_instances (
    source varchar not null,
    cluster varchar,
    gpu_uuid varchar not null,          -- the parent GPU, or its slot
    gpu_instance varchar not null,      -- GPU instance id, or '<profile>.<n>' for a scheduler's slot
    profile varchar not null,           -- '3g.40gb'
    compute_slices integer not null,    -- the weight is compute_slices / 7
    slurm_index integer,                -- index of the instance in the node's gres list
    valid_from_at timestamp,
    valid_to_at timestamp,
    load_sequence bigint not null       -- raw.ingested: the load that wrote the row as it is
);
