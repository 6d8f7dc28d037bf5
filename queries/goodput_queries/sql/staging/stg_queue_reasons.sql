-- Why the scheduler let job runs wait: its last reason other than priority and resources for those that started, the
-- present one for those that wait.
-- grain: job_run_key
-- reason: null: it gives none
select
    cluster || '/' || job_id_raw || '@' || to_ms(submit_at) // 1000 as job_run_key,
    max_by(nullif(nullif(reason, ''), 'None'), coalesce(observed_at, submit_at)) as reason
from raw.job_runs
group by all
