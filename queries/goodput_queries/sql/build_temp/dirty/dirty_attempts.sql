-- The attempts whose rows this build replaces, removed ones included.
-- grain: attempt_key
-- written_by: ledger_build/dirty.py, since it is what differs between two builds
-- reads: intermediate.int_attempts, temp.dirty_job_runs
create temp table dirty_attempts (attempt_key varchar not null);
