-- The hourly ledger of the time whose readings were dropped by age: it cannot be built again, so it is kept here.
-- grain: gpu_uuid, gpu_instance, hour_ms, job_run_key, attempt_key, category, phase
create table state.ledger_archive (
    cluster varchar not null,
    node varchar not null,
    gpu_uuid varchar not null,
    gpu_instance varchar not null,
    gpu_model varchar,
    mig_profile varchar,
    job_run_key varchar,
    attempt_key varchar,
    category varchar not null,
    phase varchar,
    hour_ms bigint not null,
    gpu_ms bigint not null
);
