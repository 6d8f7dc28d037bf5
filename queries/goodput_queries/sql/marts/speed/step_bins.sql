-- Step time of the scope's attempts in bins of steps, at most 300 an attempt, without data waits and without warm-up. A
-- bin's median is blind to single steps that took longer, as those with a checkpoint inside do.
-- grain: attempt_key, bin
-- access: team
-- bin: from 1, in the order of time
-- level_ms: median over the steps of the bin; where jobs report tokens or samples, the time of a step of the attempt's
--  mean size, so that a larger batch is no slower step
-- steps: number of steps; first_step .. until_ms: of these
with steps as (
    select *, coalesce(tokens, samples, 1) as work
    from marts.timed_steps
    where step_of_attempt >= threshold('step_warm_up')
),

attempts as (
    select
        attempt_key,
        avg(work) as mean_work,
        min(step) as first_step,
        greatest(threshold('step_bin_min'), ceil((max(step) - min(step) + 1) / threshold('step_bins_max')))::bigint
            as bin_steps
    from steps
    where work > 0
    group by attempt_key
),

bins as (
    select
        any_value(steps.run_key) as run_key,
        attempt_key,
        (steps.step - attempts.first_step) // attempts.bin_steps as number,
        median(steps.compute_ms / steps.work * attempts.mean_work) as level_ms,
        count(*) as steps,
        min(steps.step) as first_step,
        max(steps.step) as last_step,
        min(steps.start_ms) as start_ms,
        max(steps.end_ms) as end_ms,
        any_value(steps.gpus) as gpus
    from steps
    inner join attempts using (attempt_key)
    where steps.work > 0
    group by attempt_key, number
    having count(*) >= threshold('step_bin_min') / 2
)

select
    run_key,
    attempt_key,
    row_number() over (partition by attempt_key order by number) as bin,
    * exclude (run_key, attempt_key, number)
from bins
where level_ms > 0
