-- Energy of the lines of marts.statement_lines in hours with and without a carbon intensity. Prices do not divide it: a
-- line whose price changed has the carbon of its part of the energy. Scope: as marts.statement_lines.
-- grain: line, cluster, team, user_name, run_key, partition, qos, gpu_model, mig_profile
-- access: team
-- line: usage, inferred, idle (reserved GPUs among them), not_available
-- used_mj: millijoules at the node's meter, or else of the GPUs' counters
-- known_mj: of them, in hours with an intensity
-- carbon_kg: CO2 equivalent of known_mj, with the overhead of server and site; null: no hour has an intensity
with inferred as (
    select job_run_key from intermediate.int_job_runs where ownership in ('job_event', 'process')
),

energies as (
    select
        energy_line(energies.availability, energies.job_run_key, inferred.job_run_key is not null) as line,
        energies.cluster,
        energies.job_run_key,
        energies.gpu_model,
        energies.mig_profile,
        coalesce(energies.wall_mj, energies.energy_mj) as used_mj,
        carbon.g_per_kwh is not null as has_carbon,
        metered(energies.wall_mj, energies.energy_mj, carbon.g_per_wall_kwh, carbon.g_per_kwh) as carbon_mj_g
    from marts.energy_scoped as energies
    left join inferred using (job_run_key)
    left join marts.carbon_intensity as carbon using (cluster, hour_ms)
)

select
    energies.line,
    energies.cluster,
    case when energies.line in ('usage', 'inferred') then owners.team end as team,
    owners.user_name,
    owners.run_key,
    owners.partition,
    owners.qos,
    energies.gpu_model,
    energies.mig_profile,
    sum(energies.used_mj)::bigint as used_mj,
    coalesce(sum(energies.used_mj) filter (where energies.has_carbon), 0)::bigint as known_mj,
    sum(energies.carbon_mj_g) / 3.6e12 as carbon_kg
from energies
left join intermediate.int_job_run_owners as owners using (job_run_key)
where
    in_scope(
        energies.cluster, null, null, energies.gpu_model,
        owners.team, owners.user_name, owners.run_key, owners.partition
    )
group by all
