-- Energy and carbon by account in the scope's window, and what was not allocated. The energies add up to
-- marts.energy_scoped, to the millijoule. Scope: window, cluster, model, team, user, run, partition.
-- grain: cluster, availability, team
-- evaluated: first
-- availability: held, free, not_available; team: null: no job run had the GPUs, or its account is not known
-- gpu_ms, useful_ms: milliseconds of a whole GPU
-- energy_mj: millijoules of the GPUs; null: not measured; energy_kwh: the same
-- integrated_kwh: of that, from power readings of GPUs without an energy counter
-- measured_ms: GPU time for which that is known; measured_ratio: of gpu_ms
-- wall_mj: millijoules at the meters of nodes that have one; null: none has
-- energy_kwh_per_useful_gpu_h: mean power of the measured time x gpu_ms / useful_ms; null: less than half is measured, or
--  nothing is useful
-- idle_ms: allocated but idle; idle_energy_kwh: at the power of marts.idle_power; null: it is not measured for a model,
--  or nothing is allocated
-- carbon_kg: CO2 equivalent: energy at the meter, or else of the counters, x intensity of its hour with the overhead of
--  server and site; null: no hour has an intensity
-- carbon_g_per_useful_gpu_h: as the energy; null where an hour has no intensity, too
-- carbon_free_ratio: mean over the energy of hours that have it
-- unknown_carbon_kwh: energy in hours without an intensity: not in carbon_kg; unknown_hours: how many, and between
--  unknown_from_at and unknown_to_at
-- electricity_cost: as statements charge it; null: no tariff
with energies as (
    select
        energies.* exclude (job_run_key, gpu_model, mig_profile, is_metered),
        owners.team,
        coalesce(energies.wall_mj, energies.energy_mj) as used_mj,
        carbon.g_per_kwh is not null as has_carbon,
        metered(energies.wall_mj, energies.energy_mj, carbon.g_per_wall_kwh, carbon.g_per_kwh) as carbon_mj_g,
        carbon.carbon_free_ratio,
        metered(
            energies.wall_mj, energies.energy_mj, tariffs.price_per_wall_kwh::double, tariffs.price_per_kwh::double
        ) as mj_price
    from marts.energy_scoped as energies
    left join intermediate.int_job_run_owners as owners using (job_run_key)
    left join marts.carbon_intensity as carbon
        on energies.cluster = carbon.cluster and energies.hour_ms = carbon.hour_ms
    left join marts.statement_tariffs as tariffs
        on energies.cluster = tariffs.cluster and energies.hour_ms = tariffs.hour_ms
    where
        in_scope(
            energies.cluster, null, null, energies.gpu_model,
            owners.team, owners.user_name, owners.run_key, owners.partition
        )
),

of_energy as (
    select
        cluster,
        availability,
        team,
        sum(columns(['energy_mj', 'measured_ms', 'wall_mj']))::bigint,
        coalesce(sum(energy_mj) filter (where is_integrated), 0) / 3.6e9 as integrated_kwh,
        sum(carbon_mj_g) / 3.6e12 as carbon_kg,
        sum(used_mj * carbon_free_ratio) / nullif(sum(used_mj) filter (where carbon_free_ratio is not null), 0)
            as carbon_free_ratio,
        coalesce(sum(used_mj) filter (where not has_carbon), 0) / 3.6e9 as unknown_carbon_kwh,
        count(distinct hour_ms) filter (where not has_carbon) as unknown_hours,
        from_ms(min(hour_ms) filter (where not has_carbon)) as unknown_from_at,
        from_ms(max(hour_ms) filter (where not has_carbon) + one_hour_ms()) as unknown_to_at,
        sum(mj_price) / 3.6e9 as electricity_cost
    from energies
    group by cluster, availability, team
),

ledger as (
    select
        scoped.cluster,
        categories."group" as availability,
        scoped.team,
        scoped.gpu_model,
        sum(scoped.gpu_ms)::bigint as gpu_ms,
        coalesce(sum(scoped.gpu_ms) filter (where is_useful(scoped.category)), 0)::bigint as useful_ms,
        coalesce(sum(scoped.gpu_ms) filter (where scoped.category = 'idle_held'), 0)::bigint as idle_ms
    from marts.ledger_scoped_by_node as scoped
    inner join reference.gpu_second_categories as categories using (category)
    group by all
),

of_time as (
    select
        ledger.cluster,
        ledger.availability,
        ledger.team,
        sum(ledger.gpu_ms)::bigint as gpu_ms,
        sum(ledger.useful_ms)::bigint as useful_ms,
        sum(ledger.idle_ms)::bigint as idle_ms,
        case
            when count(*) filter (where ledger.idle_ms > 0 and idle.power_w is null) = 0
                then coalesce(sum(ledger.idle_ms * idle.power_w) filter (where ledger.idle_ms > 0), 0) / 3.6e9
        end as idle_energy_kwh
    from ledger
    left join marts.idle_power as idle
        on ledger.cluster = idle.cluster
        and ledger.gpu_model is not distinct from idle.gpu_model
        and idle.category = 'idle_held'
    group by ledger.cluster, ledger.availability, ledger.team
)

select
    coalesce(of_time.cluster, of_energy.cluster) as cluster,
    coalesce(of_time.availability, of_energy.availability) as availability,
    coalesce(of_time.team, of_energy.team) as team,
    coalesce(columns(['gpu_ms', 'useful_ms', 'idle_ms']), 0),
    of_energy.energy_mj,
    of_energy.energy_mj / 3.6e9 as energy_kwh,
    coalesce(columns(['measured_ms', 'integrated_kwh', 'unknown_carbon_kwh', 'unknown_hours']), 0),
    coalesce(of_energy.measured_ms, 0) / nullif(of_time.gpu_ms, 0) as measured_ratio,
    of_energy.wall_mj,
    case
        when 2 * of_energy.measured_ms >= of_time.gpu_ms
            then of_energy.energy_mj / nullif(of_energy.measured_ms, 0) * of_time.gpu_ms / 1000
                / nullif(of_time.useful_ms, 0)
    end as energy_kwh_per_useful_gpu_h,
    case when of_time.availability = 'held' then of_time.idle_energy_kwh end as idle_energy_kwh,
    of_energy.carbon_kg,
    case
        when of_energy.unknown_hours = 0 and 2 * of_energy.measured_ms >= of_time.gpu_ms
            then of_energy.carbon_kg * 3.6e9 / nullif(of_energy.measured_ms, 0) * of_time.gpu_ms
                / nullif(of_time.useful_ms, 0)
    end as carbon_g_per_useful_gpu_h,
    of_energy.carbon_free_ratio,
    of_energy.unknown_from_at,
    of_energy.unknown_to_at,
    of_energy.electricity_cost
from of_time
full join of_energy
    on of_time.cluster = of_energy.cluster
    and of_time.availability = of_energy.availability
    and of_time.team is not distinct from of_energy.team
