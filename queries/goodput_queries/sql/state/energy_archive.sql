-- The hourly energy of the time whose readings were dropped by age: it cannot be read again, so it is kept here.
-- grain: cluster, job_run_key, availability, gpu_model, mig_profile, hour_ms, is_metered, is_integrated
create table state.energy_archive (
    cluster varchar not null,
    job_run_key varchar,
    availability varchar not null,
    gpu_model varchar,
    mig_profile varchar,
    hour_ms bigint not null,
    energy_mj bigint,
    measured_ms bigint,
    is_metered boolean,
    wall_mj bigint,
    is_integrated boolean               -- null: an earlier version, which had counters alone
);
