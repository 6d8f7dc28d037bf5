-- The name of a run whose id is the number that the scheduler gave one of its jobs: the job's name with that number.
-- Null: the id is a name, or begins with that of the job. A run has many jobs: the name of one of them stands for all.
create or replace macro numbered_run_name(run_id, job_id, job_name) as (
    case
        when run_id in (job_id, '') and job_name not in (job_id, '') and not starts_with(run_id, job_name || ' (')
            then job_name || ' (' || run_id || ')'
    end
);
