-- A part of a GPU with a weight: a MIG instance, or a share of its time (time-slicing).
-- grain: source, cluster, gpu_uuid, gpu_instance, valid_from_at
-- keep: valid_to_at; versions of source, cluster, gpu_uuid
-- times: planned valid_from_at
create table raw.gpu_instances (
    source varchar not null,
    cluster varchar,
    gpu_uuid varchar not null,          -- the parent GPU, or its slot
    gpu_instance varchar not null,      -- GPU instance id, or '<profile>.<n>' for a scheduler's slot,
                                        -- 'share.<n>/<of>'
    profile varchar not null,           -- '3g.40gb', 'shared 1/4'
    compute_slices integer not null,    -- the weight is compute_slices / slices_of
    slices_of integer,                  -- null: 7, a MIG instance; of a share how many there are
    slurm_index integer,                -- index of the instance in the node's gres list
    valid_from_at timestamp,
    valid_to_at timestamp,
    load_sequence bigint not null       -- state.ingested: the load that wrote the row as it is
);
