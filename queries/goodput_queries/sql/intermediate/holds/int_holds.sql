-- Which GPU or instance each job run held, and when: never two at one time. Written by ledger_build/placement/place.py,
-- since putting holds that name no GPU on the lowest free slot is a walk in time, not a select.
-- grain: gpu_uuid, gpu_instance, start_ms
-- written_by: ledger_build/placement/place.py
-- change_tracking: start_ms, end_ms of gpu_uuid
-- reads: intermediate.int_job_runs, intermediate.int_reported_holds, intermediate.int_slots, staging.stg_node_states
create table intermediate.int_holds (
    cluster varchar not null,
    job_run_key varchar not null,
    node varchar not null,
    gpu_uuid varchar not null,
    gpu_instance varchar not null,
    slurm_index integer,
    start_ms bigint not null,
    end_ms bigint,                      -- null: still held
    method varchar not null             -- exact (all of the node), scontrol, hpc_job, pod, label ..., assumed
);
