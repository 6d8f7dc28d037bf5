-- Claims of job runs on GPUs and instances, as placement makes them: those of two job runs may overlap.
-- Holds and their conflicts follow from them. A build that places some job runs again keeps the claims of the others.
-- grain: none (a job run may move between the GPUs of a node)
-- materialised: by ledger_build/placement/set_wise.py; reads intermediate.int_job_runs, intermediate.int_reported_holds, intermediate.int_slots, staging.stg_node_states
create table intermediate.int_claims (
    cluster varchar not null,
    job_run_key varchar not null,
    node varchar not null,
    gpu_uuid varchar not null,
    gpu_instance varchar not null,
    slurm_index integer,
    start_ms bigint not null,
    end_ms bigint,                      -- null: the job run has not ended
    method varchar not null,            -- as in int_holds
    phase tinyint not null,             -- 1: named GPUs and whole nodes, 2: a number on a node, 3: spread over nodes
    run_start_ms bigint not null        -- start of the job run: the order of placement in a phase
);
