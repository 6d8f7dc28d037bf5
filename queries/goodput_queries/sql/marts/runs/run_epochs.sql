-- Passes of runs over their data, as steps name them in the field `epoch`: whether later ones wait less for input, since
-- caches are filled, and how long their steps are.
-- grain: run_key, epoch
-- access: team
-- epoch: number of the pass, the first is 0; steps: number of different ones
-- data_wait_ratio: waits for data, of the time of the steps with their duration; null: no step reports waits
-- median_step_s: of ranks and steps
with lives as (select distinct cluster, run_id, job_run_key from intermediate.int_attempt_lives)

select
    attempts.run_key,
    steps.epoch,
    count(distinct steps.step) as steps,
    sum(steps.data_s) filter (where steps.dur_s > 0) / sum(steps.dur_s) filter (where steps.data_s is not null)
        as data_wait_ratio,
    median(steps.dur_s) as median_step_s
from staging.stg_step_epochs as steps
inner join lives on steps.cluster = lives.cluster and steps.run_id = lives.run_id
inner join intermediate.int_attempts as attempts
    on lives.job_run_key = attempts.job_run_key
    -- jobs of two teams may have one run id
    and steps.end_ms > attempts.start_ms
    and steps.end_ms <= coalesce(attempts.end_ms, forever_ms())
where
    in_window(steps.end_ms, steps.end_ms)
    and in_cluster(steps.cluster)
    and of_owner(attempts.team, attempts.user_name, attempts.run_key, attempts.partition)
group by attempts.run_key, steps.epoch
