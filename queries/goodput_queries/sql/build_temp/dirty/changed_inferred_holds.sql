-- The job runs whose inferred holds differ from the previous build's.
-- grain: job_run_key
-- materialised: by ledger_build/materialise.py; reads staging.stg_inferred_holds, since it is what differs between two builds
create temp table changed_inferred_holds (job_run_key varchar not null);
