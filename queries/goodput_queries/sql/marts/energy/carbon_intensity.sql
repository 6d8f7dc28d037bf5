-- Carbon intensity in each hour of a cluster with measured energy; hours without one have no row. An intensity of the
-- cluster takes precedence over one for all, a later one over an earlier.
-- grain: cluster, hour_ms
-- g_per_kwh: grams of CO2 equivalent per kWh of the GPUs' counters: server and site come on top
-- g_per_wall_kwh: per kWh of the nodes' own meters: the site comes on top
-- carbon_free_ratio: share of carbon-free electricity; null: not known
with hours as (
    select distinct cluster, hour_ms from marts.statement_energy_hourly where in_window(hour_ms, hour_ms + one_hour_ms())
)

select
    hours.cluster,
    hours.hour_ms,
    (carbon.g_per_kwh * carbon.pue * carbon.server_ratio)::double as g_per_kwh,
    (carbon.g_per_kwh * carbon.pue)::double as g_per_wall_kwh,
    carbon.carbon_free_ratio::double as carbon_free_ratio
from hours
inner join staging.stg_carbon as carbon
    on coalesce(carbon.cluster, hours.cluster) = hours.cluster
    and carbon.from_ms <= hours.hour_ms
    and carbon.to_ms > hours.hour_ms
qualify row_number() over (
    partition by hours.cluster, hours.hour_ms
    order by carbon.cluster is not null desc, carbon.from_ms desc, carbon.to_ms
) = 1
