-- The job runs whose attempts this build makes anew: all of each run of which anything changed, before or after.
-- grain: job_run_key
-- written_by: ledger_build/dirty.py, since it is what differs between two builds
-- reads: intermediate.int_event_lives, temp.dirty_run_ids
create temp table dirty_job_runs (job_run_key varchar not null);
