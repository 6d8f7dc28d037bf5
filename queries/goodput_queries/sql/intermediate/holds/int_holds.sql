-- Holds: the GPUs or instances of each job run over time; never two job runs on one at a time. Written by
-- ledger_build/placement, since placement on the lowest free slot is sequential, not a select.
-- grain: gpu_uuid, gpu_instance, start_ms
-- materialised: by ledger_build/placement/set_wise.py; reads intermediate.int_job_runs, intermediate.int_reported_holds, intermediate.int_slots, staging.stg_node_states
-- change_tracking: start_ms, end_ms
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
