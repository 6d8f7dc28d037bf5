-- When runs of the window that go on, and say how many steps they are to have, will end, and what that will cost. Their
-- steps count wherever the window begins and ends. Of others that go on, and whose trainer reports how far they are, what it
-- reports.
-- grain: run_key
-- access: team
-- planned_steps: `planned_steps` of the job or its log
-- done_steps: null: only the trainer says how far it is; else the last step of the running attempt, whichever attempt did it first
-- progress_ratio: done_steps / planned_steps, at most 1; else as the trainer reports it
-- pace_s, stepping_s: wall time of a step, over the last 24 hours with all that came between steps and since, and of the
--  running attempt's steps alone; of a trainer that reports several steps at once, of each
-- expected_end_at: at pace_s, else as the trainer reports it; null: no step was new in these hours
-- earliest_end_at: at stepping_s, if nothing stops it
-- low_end_at, high_end_at: the 95 % interval, by how unlike each other its last 24 hours were; null: it has fewer than
--  4 hours, or the steps of most of them come from few
-- expected_rest_cost, earliest_rest_cost, low_rest_cost, high_rest_cost: of its GPUs from the end of evidence until then,
--  at its mean price in the window; null: the rate card has no price
with goals as (
    select
        run_key,
        max(try_cast(value as bigint)) filter (where attribute = 'planned_steps') as planned_steps,
        max(try_cast(value as double)) filter (where attribute = 'progress_ratio') as progress_ratio,
        max(try_cast(value as timestamp)) filter (where attribute = 'expected_end_at') as reported_end_at
    from marts.run_attributes
    where attribute in ('planned_steps', 'progress_ratio', 'expected_end_at')
    group by run_key
),

running as (
    select
        attempts.run_key,
        max(attempts.attempt) as attempt,
        arg_max(attempts.gpus, attempts.attempt) as gpus,
        any_value(columns(['planned_steps', 'progress_ratio', 'reported_end_at'])),
        any_value(clusters.as_of_ms) as as_of_ms
    from intermediate.int_attempts as attempts
    inner join goals using (run_key)
    inner join intermediate.int_clusters as clusters using (cluster)
    where (goals.planned_steps > 0 or goals.progress_ratio is not null) and of_teams(attempts.team)
    group by attempts.run_key
    having bool_or(attempts.end_ms is null)
),

steps as (
    select
        running.run_key,
        steps.step,
        steps.start_ms,
        steps.end_ms,
        attempts.attempt = running.attempt as is_current,
        greatest(running.as_of_ms, max(steps.end_ms) over (partition by running.run_key)) as now_ms
    from intermediate.int_train_steps as steps
    inner join intermediate.int_attempts as attempts using (attempt_key)
    inner join running on attempts.run_key = running.run_key and running.planned_steps > 0
),

done as (
    select
        run_key,
        max(now_ms) as now_ms,
        max(step) filter (where is_current) as done_steps,
        min(step) filter (where is_current) as first_step,
        sum(end_ms - start_ms) filter (where is_current) - arg_min(end_ms - start_ms, step) filter (where is_current)
            as stepping_ms,
        arg_min(step, end_ms) filter (where end_ms >= now_ms - one_day_ms()) as day_step,
        min(end_ms) filter (where end_ms >= now_ms - one_day_ms()) as day_ms,
        least(24, (max(now_ms) - min(end_ms)) // one_hour_ms()) as full_hours
    from steps
    group by run_key
),

-- steps beyond all before, by the hours that end with the evidence
hours as (
    select run_key, hour, best_step - lag(best_step) over (partition by run_key order by hour desc) as new_steps
    from (
        select
            run_key,
            (now_ms - end_ms) // one_hour_ms() as hour, -- 0: the last one
            max(max(step)) over (partition by run_key order by hour desc) as best_step
        from steps
        group by run_key, hour
    )
),

rates as (
    select
        done.run_key,
        sum(hours.new_steps) / done.full_hours as mean_steps,
        sum(hours.new_steps * hours.new_steps) / done.full_hours as mean_of_squares
    from done
    inner join hours on done.run_key = hours.run_key and hours.hour < done.full_hours
    group by done.run_key, done.full_hours
),

paces as (
    select
        running.*,
        done.done_steps,
        done.now_ms,
        greatest(0, running.planned_steps - done.done_steps) as steps_left,
        case when done.done_steps > done.day_step
            then (done.now_ms - done.day_ms) / (done.done_steps - done.day_step)
        end as pace_ms,
        case when done.done_steps > done.first_step then done.stepping_ms / (done.done_steps - done.first_step) end
            as stepping_ms,
        case when done.full_hours >= 4 and rates.mean_steps > 0 then hours_until(
                greatest(0, running.planned_steps - done.done_steps),
                rates.mean_steps,
                sqrt(
                    greatest(0, rates.mean_of_squares - pow(rates.mean_steps, 2)) -- below it by rounding
                    * done.full_hours / (done.full_hours - 1)
                ),
                done.full_hours
            )
        end as hours_left
    from running
    inner join done using (run_key)
    left join rates using (run_key)
    where done.done_steps is not null
),

prices as (
    select run_key, sum(cost) * one_hour_ms() / nullif(sum(gpu_ms), 0) as price_per_gpu_h
    from marts.run_categories
    group by run_key
)

select
    paces.run_key,
    paces.planned_steps,
    paces.done_steps,
    least(1, paces.done_steps / paces.planned_steps) as progress_ratio,
    paces.pace_ms / 1000.0 as pace_s,
    paces.stepping_ms / 1000.0 as stepping_s,
    from_ms((paces.now_ms + paces.steps_left * paces.pace_ms)::bigint) as expected_end_at,
    from_ms((paces.now_ms + paces.steps_left * paces.stepping_ms)::bigint) as earliest_end_at,
    from_ms((paces.now_ms + paces.hours_left.low * one_hour_ms())::bigint) as low_end_at,
    from_ms((paces.now_ms + paces.hours_left.high * one_hour_ms())::bigint) as high_end_at,
    paces.gpus * paces.steps_left * paces.pace_ms / one_hour_ms() * prices.price_per_gpu_h as expected_rest_cost,
    paces.gpus * paces.steps_left * paces.stepping_ms / one_hour_ms() * prices.price_per_gpu_h as earliest_rest_cost,
    paces.gpus * paces.hours_left.low * prices.price_per_gpu_h as low_rest_cost,
    paces.gpus * paces.hours_left.high * prices.price_per_gpu_h as high_rest_cost
from paces
left join prices using (run_key)
union all by name
select
    running.run_key,
    greatest(0, least(1, running.progress_ratio)) as progress_ratio,
    running.reported_end_at as expected_end_at,
    running.gpus * greatest(0, to_ms(running.reported_end_at) - running.as_of_ms) / one_hour_ms() * prices.price_per_gpu_h
        as expected_rest_cost
from running
anti join paces using (run_key)
left join prices using (run_key)
where running.progress_ratio is not null
