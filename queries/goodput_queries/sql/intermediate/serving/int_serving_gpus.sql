-- GPUs of serving engines: none, unless a package has a stage of this name.
-- grain: job_run_key
select null::varchar as job_run_key where false
