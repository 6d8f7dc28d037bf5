-- Progress and recent goodput of runs, over their whole life, independent of the scope's window.
-- grain: run_key
-- access: team
-- goodput_since_restart_ratio: useful share of the allocated time of the last attempt; null where none of it is classified
-- goodput_1d_ratio, goodput_3d_ratio, goodput_5d_ratio: the same of the days up to the run's end, in whole hours
with attempts as (
    select
        attempts.run_key,
        max(coalesce(attempts.end_ms, clusters.as_of_ms)) as last_end_ms,
        arg_max(attempts.attempt_key, attempts.attempt) as last_attempt_key,
        count(*) filter (where attempts.outcome not in ('ok', 'running', 'unknown')) as interruptions
    from intermediate.int_attempts as attempts
    inner join intermediate.int_clusters as clusters using (cluster)
    where of_teams(attempts.team) and in_cluster(attempts.cluster)
    group by attempts.run_key
),

steps as (
    select
        run_key,
        max(step) filter (where fate = 'kept') as last_retained_step,
        coalesce(sum(end_ms - start_ms) filter (where fate = 'lost'), 0) / 1000.0 as rolled_back_s
    from intermediate.int_train_steps
    where attempt_key in (select attempt_key from intermediate.int_attempts where of_teams(team))
    group by run_key
),

hours as (
    select
        owners.run_key,
        hourly.attempt_key,
        hourly.hour_ms,
        sum(hourly.gpu_ms) as gpu_ms,
        coalesce(sum(hourly.gpu_ms) filter (where is_useful(hourly.category)), 0) as useful_ms,
        coalesce(sum(hourly.gpu_ms) filter (where is_unsettled(hourly.category)), 0) as unsettled_ms
    from marts.ledger_hourly_by_node as hourly
    inner join intermediate.int_job_run_owners as owners using (job_run_key)
    where of_teams(owners.team)
    group by all
),

ratios as (
    select
        hours.run_key,
        measured_goodput_ratio(
            sum(hours.useful_ms) filter (where hours.attempt_key = attempts.last_attempt_key),
            sum(hours.unsettled_ms) filter (where hours.attempt_key = attempts.last_attempt_key),
            sum(hours.gpu_ms) filter (where hours.attempt_key = attempts.last_attempt_key)
        ) as goodput_since_restart_ratio,
        measured_goodput_ratio(
            sum(hours.useful_ms) filter (where hours.hour_ms > attempts.last_end_ms - 24 * one_hour_ms()),
            sum(hours.unsettled_ms) filter (where hours.hour_ms > attempts.last_end_ms - 24 * one_hour_ms()),
            sum(hours.gpu_ms) filter (where hours.hour_ms > attempts.last_end_ms - 24 * one_hour_ms())
        ) as goodput_1d_ratio,
        measured_goodput_ratio(
            sum(hours.useful_ms) filter (where hours.hour_ms > attempts.last_end_ms - 72 * one_hour_ms()),
            sum(hours.unsettled_ms) filter (where hours.hour_ms > attempts.last_end_ms - 72 * one_hour_ms()),
            sum(hours.gpu_ms) filter (where hours.hour_ms > attempts.last_end_ms - 72 * one_hour_ms())
        ) as goodput_3d_ratio,
        measured_goodput_ratio(
            sum(hours.useful_ms) filter (where hours.hour_ms > attempts.last_end_ms - 120 * one_hour_ms()),
            sum(hours.unsettled_ms) filter (where hours.hour_ms > attempts.last_end_ms - 120 * one_hour_ms()),
            sum(hours.gpu_ms) filter (where hours.hour_ms > attempts.last_end_ms - 120 * one_hour_ms())
        ) as goodput_5d_ratio
    from hours
    inner join attempts using (run_key)
    group by hours.run_key
)

select
    attempts.run_key,
    attempts.interruptions,
    steps.last_retained_step,
    steps.rolled_back_s,
    ratios.* exclude (run_key)
from attempts
left join steps using (run_key)
left join ratios using (run_key)
