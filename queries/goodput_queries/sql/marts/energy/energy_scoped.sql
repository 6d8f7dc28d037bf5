-- Energy by owner and hour in the scope's window. Of the first and the last hour there is evidence of a part, which the
-- energy is that of; a window that cuts it has its part. Owners do not restrict it.
-- grain: cluster, job_run_key, availability, gpu_model, mig_profile, hour_ms, is_metered
-- availability, energy_mj, measured_ms, is_metered, wall_mj: as in marts.statement_energy_hourly
with evident as (
    select
        energy.*,
        greatest(energy.hour_ms, clusters.first_ms) as start_ms,
        least(energy.hour_ms + 3600000, clusters.as_of_ms) as end_ms
    from marts.statement_energy_hourly as energy
    inner join intermediate.int_clusters as clusters using (cluster)
    where in_window(energy.hour_ms, energy.hour_ms + 3600000)
)

select
    * exclude (energy_mj, measured_ms, wall_mj, start_ms, end_ms),
    scope_part(wall_mj, start_ms, end_ms) as wall_mj,
    scope_part(energy_mj, start_ms, end_ms) as energy_mj,
    scope_part(measured_ms, start_ms, end_ms) as measured_ms
from evident
where end_ms > start_ms
