-- Energy of the scope's runs in its window, by the counters of their GPUs and by the meters of their nodes.
-- grain: run_key
-- access: team
-- held_ms: milliseconds of a whole GPU that it had; measured_ms: of them those that counters cover
-- energy_kwh: of the GPUs; null: not measured
-- wall_kwh: at the meters of nodes; null: no node has one
with held as (
    select run_key, sum(gpu_ms)::bigint as held_ms from marts.run_categories group by run_key
),

energies as (
    select
        owners.run_key,
        sum(energies.energy_mj) / 3.6e9 as energy_kwh,
        sum(energies.measured_ms)::bigint as measured_ms,
        sum(energies.wall_mj) / 3.6e9 as wall_kwh
    from marts.energy_scoped as energies
    inner join intermediate.int_job_run_owners as owners using (job_run_key)
    where energies.availability = 'held' and of_teams(owners.team)
    group by owners.run_key
)

select
    held.run_key,
    held.held_ms,
    coalesce(energies.measured_ms, 0) as measured_ms,
    energies.energy_kwh,
    energies.wall_kwh
from held
left join energies using (run_key)
