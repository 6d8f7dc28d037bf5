-- Whose GPU it was by a label on its telemetry (a pod, a job id of the prolog): first to last reading of a part
-- of a file or of a poll that carried it. Labels linger after the end: where a scheduler tells of the cluster it alone
-- says who held what, and labels with its job ids say which GPUs.
-- grain: source, gpu_uuid, gpu_instance, kind, owner, container, first_seen_at
-- keep: last_seen_at
-- time: first_seen_at
-- observed: first_seen_at, last_seen_at
create table raw.gpu_owners (
    source varchar not null,
    cluster varchar,
    gpu_uuid varchar not null,
    gpu_instance varchar not null,      -- '' for the whole GPU
    kind varchar not null,              -- pod, hpc_job
    owner varchar not null,             -- '<namespace>/<pod>', or the job id as printed
    container varchar not null,         -- '' where none
    first_seen_at timestamp not null,
    last_seen_at timestamp not null,
    load_sequence bigint not null       -- raw.ingested: the load that wrote the row as it is
);
