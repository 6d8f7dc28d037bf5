-- The job runs whose attempts this build recomputes: all of each run with a change, before or after it.
-- grain: job_run_key
-- materialised: by ledger_build/dirty_runs.py; reads intermediate.int_event_lives, temp.dirty_run_ids, since it is what differs between two builds
create temp table dirty_job_runs (job_run_key varchar not null);
