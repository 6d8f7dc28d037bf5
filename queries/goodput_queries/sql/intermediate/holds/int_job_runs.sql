-- Job runs of the last build: a copy of staging.stg_job_runs, which the next build compares to find changes.
-- grain: job_run_key
-- materialised: job_runs, since the build looks only at those that changed
select * exclude (load_sequence)
from staging.stg_job_runs
where
    load_sequence > built_sequence()
    -- what other records say may end one that ran
    or start_ms is not null and record_end_ms is null
    -- readings of other GPUs end one whose label is away with its exporter
    or ownership = 'label'
    or job_run_key in (select job_run_key from temp.changed_inferred_holds)
