-- Attempts whose training loss became NaN or infinite, or diverged, by the losses that the job reports.
-- grain: attempt_key, kind
-- access: team
-- evaluated: first
-- kind: not_finite (NaN or infinite), diverged (far over the median of the steps before it for a number of steps)
-- step, step_at: the first such step and its end
-- last_finite_step, last_finite_loss: the last step before it with a finite loss
-- baseline_loss: of a divergence: median of the steps before it; highest_loss: highest finite loss of the steps
-- steps: number of logged steps that are so: of a divergence those in one row
-- confidence: Confirmed where the last logged loss of the attempt is so (is_lasting), else Likely
with losses as (
    select
        losses.*,
        max(losses.step) over (partition by losses.attempt_key) as last_step
    from intermediate.int_step_losses as losses
    inner join intermediate.int_attempts as attempts using (attempt_key)
    where
        in_window(attempts.start_ms, attempts.end_ms)
        and in_cluster(attempts.cluster)
        and of_owner(attempts.team, attempts.user_name, attempts.run_key, attempts.partition)
),

first_not_finite as (
    select
        attempt_key,
        'not_finite' as kind,
        min(step) as step,
        arg_min(at_ms, step) as at_ms,
        count(*) as steps,
        max(step) = any_value(last_step) as is_lasting
    from losses
    where not isfinite(loss)
    group by attempt_key
),

judged as (
    select
        *,
        median(loss) over before_it as baseline,
        count(*) over before_it as before_it,
        row_number() over (partition by attempt_key order by step) as number
    from losses
    where isfinite(loss)
    window before_it as (
        partition by attempt_key order by step
        rows between (threshold('diverged_baseline_steps')::bigint) preceding and 1 preceding
    )
),

high as (
    select *, number - row_number() over (partition by attempt_key order by step) as stretch
    from judged
    where
        before_it >= threshold('diverged_steps')
        and baseline > 0
        and loss > threshold('diverged_ratio') * baseline
),

first_diverged as (
    select
        attempt_key,
        'diverged' as kind,
        min(step) as step,
        arg_min(at_ms, step) as at_ms,
        arg_min(baseline, step) as baseline_loss,
        max(loss) as highest_loss,
        count(*) as steps,
        max(step) = any_value(last_step) as is_lasting
    from high
    group by attempt_key, stretch
    having count(*) >= threshold('diverged_steps')
    qualify row_number() over (partition by attempt_key order by min(step)) = 1
),

found as (
    select * from first_not_finite
    union all by name
    select * from first_diverged
),

before_found as (
    select
        found.attempt_key,
        found.kind,
        max(losses.step) as last_finite_step,
        arg_max(losses.loss, losses.step) as last_finite_loss
    from found
    inner join losses on found.attempt_key = losses.attempt_key and losses.step < found.step
    where isfinite(losses.loss)
    group by found.attempt_key, found.kind
)

select
    attempts.cluster,
    attempts.run_key,
    attempts.run_id,
    attempts.attempt,
    found.* exclude (at_ms),
    attempts.team,
    attempts.user_name,
    from_ms(found.at_ms) as step_at,
    before_found.last_finite_step,
    before_found.last_finite_loss,
    case when found.is_lasting then 'Confirmed' else 'Likely' end as confidence,
    'from step ' || found.step || ' of attempt ' || attempts.attempt || ' on, in ' || counted(found.steps, 'logged step')
        || coalesce(
            '; the last finite loss was ' || round(before_found.last_finite_loss, 3)
                || ' at step ' || before_found.last_finite_step,
            ''
        ) as evidence
from found
inner join intermediate.int_attempts as attempts using (attempt_key)
left join before_found using (attempt_key, kind)
