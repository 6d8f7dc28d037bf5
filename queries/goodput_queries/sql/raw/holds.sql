-- GPUs of a job run on a node, where a source reports them. Accounting alone never does.
-- grain: source, cluster, job_id_raw, submit_at, node, slurm_index, gpu_uuid, gpu_instance, start_at
-- keep: end_at is not null, method, end_at
-- times: observed submit_at, start_at, end_at
create table raw.holds (
    source varchar not null,
    cluster varchar not null,
    job_id_raw varchar not null,
    submit_at timestamp not null,
    node varchar not null,
    slurm_index integer,                -- null with gpus: only the number on this node is known
    gpu_uuid varchar,
    gpu_instance varchar,               -- 'share': of a GPU that others may have too, in equal parts
    gpu_type varchar,
    gpus integer,                       -- number on this node where the index is unknown
    method varchar not null,            -- scontrol, hpc_job, pod, job_report
    start_at timestamp,                 -- of a part of a gang that begins by itself (a pod); null: the job run's
    end_at timestamp,                   -- null: the job run's
    load_sequence bigint not null       -- state.ingested: the load that wrote the row as it is
);
