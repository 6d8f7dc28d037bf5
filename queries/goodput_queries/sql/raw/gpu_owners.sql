-- Owner of a GPU by a label on its telemetry (a pod, a job id of the prolog): first to last reading with the label in
-- part of a file or in a poll. Labels stay after the end of a job: where a scheduler covers the cluster it alone
-- determines the holds, and labels with its job ids determine the GPUs.
-- grain: source, gpu_uuid, gpu_instance, kind, owner, container, first_seen_at
-- keep: last_seen_at
-- times: by first_seen_at; observed last_seen_at
create table raw.gpu_owners (
    source varchar not null,
    cluster varchar,
    gpu_uuid varchar not null,
    gpu_instance varchar not null,      -- '' for the whole GPU
    kind varchar not null,              -- pod, hpc_job
    owner varchar not null,             -- '<namespace>/<pod>', or the job id as printed
    container varchar not null,         -- '' where none
    user_name varchar,                  -- of the job, where labels say, as does partition
    partition varchar,
    first_seen_at timestamp not null,
    last_seen_at timestamp not null,
    load_sequence bigint not null       -- state.ingested: the load that wrote the row as it is
);
