-- Price of a kWh in each hour of a cluster with measured energy: the tariff of that hour of the day in its own zone,
-- times the overhead of server and site. A tariff of the cluster takes precedence over one for all, a later one over an
-- earlier; hours of a closed day keep theirs.
-- grain: cluster, hour_ms
-- price_per_kwh: per kWh of the GPUs' counters: server and site come on top
-- price_per_wall_kwh: per kWh of the nodes' own meters: the site comes on top
with hours as (
    select distinct cluster, hour_ms from marts.statement_energy_hourly where in_window(hour_ms, hour_ms + one_hour_ms())
),

matches as (
    select
        hours.cluster,
        hours.hour_ms,
        (tariffs.cluster is not null, tariffs.from_ms, tariffs.from_hour) as rank,
        (tariffs.price_per_kwh * tariffs.pue * tariffs.server_ratio)::decimal(18, 9) as price_per_kwh,
        (tariffs.price_per_kwh * tariffs.pue)::decimal(18, 9) as price_per_wall_kwh,
        hour(timezone(tariffs.zone, from_ms(hours.hour_ms)::timestamptz)) as hour_of_day,
        tariffs.from_hour,
        tariffs.to_hour
    from hours
    inner join staging.stg_tariffs as tariffs
        on coalesce(tariffs.cluster, hours.cluster) = hours.cluster
        and tariffs.from_ms <= hours.hour_ms
        and tariffs.to_ms > hours.hour_ms
),

of_tariffs as (
    select
        cluster,
        hour_ms,
        arg_max(price_per_kwh, rank) as price_per_kwh,
        arg_max(price_per_wall_kwh, rank) as price_per_wall_kwh
    from matches
    where
        case
            when from_hour < to_hour then hour_of_day >= from_hour and hour_of_day < to_hour
            else hour_of_day >= from_hour or hour_of_day < to_hour
        end
    group by cluster, hour_ms
)

select
    hours.cluster,
    hours.hour_ms,
    coalesce(kept.price_per_kwh, of_tariffs.price_per_kwh) as price_per_kwh,
    coalesce(kept.price_per_wall_kwh, of_tariffs.price_per_wall_kwh) as price_per_wall_kwh
from hours
left join of_tariffs using (cluster, hour_ms)
left join billing.statement_tariffs as kept
    on hours.cluster = kept.cluster and from_ms(hours.hour_ms) = kept.hour_at
where coalesce(kept.price_per_kwh, of_tariffs.price_per_kwh) is not null
