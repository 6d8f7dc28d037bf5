-- A step of a job run (batch, extern, 0 ...): its ending may say what the job's does not (OUT_OF_MEMORY).
-- grain: source, cluster, job_id_raw, step_id, start_at
-- keep: end_at is not null, end_at
-- times: observed start_at, end_at
create table raw.job_steps (
    source varchar not null,
    cluster varchar not null,
    job_id_raw varchar not null,
    step_id varchar not null,
    start_at timestamp,
    end_at timestamp,
    state varchar not null,
    exit_code varchar,
    nodes varchar[],
    gpus integer,
    load_sequence bigint not null       -- state.ingested: the load that wrote the row as it is
);
