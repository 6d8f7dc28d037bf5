-- Owner of each job run.
-- grain: job_run_key
-- materialised: runs, since every row of the ledger joins it
-- skip_if_empty: temp.dirty_job_runs
select
    job_run_key,
    any_value(cluster) as cluster,
    any_value(run_key) as run_key,
    any_value(run_id) as run_id,
    any_value(job_id) as job_id,
    any_value(job_name) as job_name,
    any_value(team) as team,
    any_value(user_name) as user_name,
    any_value(partition) as partition,
    any_value(qos) as qos,
    any_value(state) as state
from temp.int_attempts
group by job_run_key
