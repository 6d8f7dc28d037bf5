-- The runs, as their jobs name them, whose events this build reads again.
-- grain: cluster, run_id
-- materialised: by ledger_build/dirty_runs.py; reads intermediate.int_holds, staging.stg_job_events, since it is what differs between two builds
create temp table dirty_run_ids (cluster varchar not null, run_id varchar not null);
