-- Energy of a step of the scope's runs in the scope's window: what the GPUs drew over all allocated time, start-up and
-- idle time included, for the steps that were not lost. Runs that report no step are left out.
-- grain: run_key
-- access: team
-- run_id, job_name, team, user_name: of its job runs
-- held_ms: milliseconds of a whole GPU that it had; measured_ms: of them those with known energy
-- energy_kwh: of the GPUs' counters, measured time alone; null: not measured
-- steps: that ended in the window and were not lost; the last ones of a run that goes on may still be
-- step_energy_wh: energy / steps, the mean power of the measured time over the allocated time; null: less than half of
--  that is measured, or no step is retained
with steps as (
    select attempts.run_key, count(*) filter (where steps.fate <> 'lost') as steps
    from intermediate.int_train_steps as steps
    inner join intermediate.int_attempts as attempts using (attempt_key)
    where
        in_window(steps.start_ms, steps.end_ms)
        and of_owner(attempts.team, attempts.user_name, attempts.run_key, attempts.partition)
    group by attempts.run_key
),

owners as (
    select
        run_key,
        max(columns(['cluster', 'run_id', 'job_name', 'team', 'user_name']))
    from intermediate.int_job_run_owners
    where of_teams(team)
    group by run_key
)

select
    owners.cluster,
    steps.run_key,
    owners.* exclude (run_key, cluster),
    energies.held_ms,
    energies.measured_ms,
    energies.energy_kwh,
    steps.steps,
    case
        when 2 * energies.measured_ms >= energies.held_ms
            then 1000 * energies.energy_kwh * energies.held_ms / nullif(energies.measured_ms, 0) / nullif(steps.steps, 0)
    end as step_energy_wh
from steps
inner join marts.energy_by_run as energies using (run_key)
inner join owners using (run_key)
