-- Runs whose job runs are all of one team: what is known by the run alone belongs to it.
-- grain: run_key
select run_key, any_value(team) as team
from intermediate.int_job_run_owners
where run_key is not null
group by run_key
having count(distinct team) = 1 and count(team) = count(*)
