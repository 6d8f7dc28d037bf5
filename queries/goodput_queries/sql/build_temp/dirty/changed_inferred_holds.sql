-- The job runs whose inferred holds differ from the previous build's.
-- grain: job_run_key
-- written_by: ledger_build/materialise.py, since it is what differs between two builds
-- reads: staging.stg_inferred_holds
create temp table changed_inferred_holds (job_run_key varchar not null);
