-- Owners of job runs with numbers, by which many rows are joined faster than by names.
-- grain: owner
-- owner: number of the job run; the same in every query as long as nothing is built
select *, (row_number() over (order by job_run_key))::integer as owner from intermediate.int_job_run_owners
