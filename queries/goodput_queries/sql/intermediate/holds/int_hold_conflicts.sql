-- Conflicts: time for which two job runs claimed the same GPU; the later start holds it.
-- grain: gpu_uuid, gpu_instance, job_run_key, start_ms
-- materialised: by ledger_build/placement/set_wise.py
create table intermediate.int_hold_conflicts (
    cluster varchar not null,
    node varchar not null,
    gpu_uuid varchar not null,
    gpu_instance varchar not null,
    job_run_key varchar not null,       -- the one that lost the time
    kept_by varchar not null,
    start_ms bigint not null,
    end_ms bigint
);
