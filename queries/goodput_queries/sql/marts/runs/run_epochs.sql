-- Passes of runs over their data, as steps name them in the field `epoch`: whether later ones wait less for input, since
-- caches are filled, and how long their steps are.
-- grain: run_key, epoch
-- access: team
-- epoch: number of the pass, the first is 0; steps: number of different ones
-- data_wait_ratio: waits for data, of the time of the steps with their duration; null: no step reports waits
-- median_step_s: of ranks and steps
with lives as (select distinct cluster, run_id, job_run_key from intermediate.int_attempt_lives)

select
    owners.run_key,
    steps.epoch,
    count(distinct steps.step) as steps,
    sum(steps.data_s) filter (where steps.dur_s > 0) / sum(steps.dur_s) filter (where steps.data_s is not null)
        as data_wait_ratio,
    median(steps.dur_s) as median_step_s
from staging.stg_step_epochs as steps
inner join lives on steps.cluster = lives.cluster and steps.run_id = lives.run_id
inner join intermediate.int_job_run_owners as owners using (job_run_key)
where
    in_window(steps.end_ms, steps.end_ms)
    and in_cluster(steps.cluster)
    and of_owner(owners.team, owners.user_name, owners.run_key, owners.partition)
group by owners.run_key, steps.epoch
