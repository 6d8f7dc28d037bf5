-- Owner of each job run.
-- grain: job_run_key
-- materialised: runs, since every row of the ledger joins it
-- skip_if_empty: temp.dirty_job_runs
select
    job_run_key,
    any_value(columns([
        'cluster', 'run_key', 'run_id', 'job_id', 'job_name', 'team', 'user_name', 'partition', 'qos', 'state'
    ]))
from temp.int_attempts
group by job_run_key
