-- Energy of servers by their own power meters, hour by hour: of the time in it that a meter covers without a hole.
-- A power reading covers the time back to the previous one; readings too far apart leave the time between unknown.
-- grain: cluster, node, hour_ms
-- start_ms, end_ms: that time
-- energy_mj: millijoules
-- materialised: hourly, since it needs a pass over all readings of the meters
-- skip_if_empty: raw.node_samples
with readings as (
    select
        samples.source,
        coalesce(samples.cluster, clusters.cluster) as cluster,
        samples.node,
        samples.power_w,
        lag(samples.ts_ms) over (
            partition by samples.source, samples.cluster, samples.node order by samples.ts
        ) as start_ms,
        samples.ts_ms as end_ms
    from staging.stg_node_samples as samples
    inner join staging.stg_node_clusters as clusters using (node)
    where
        coalesce(samples.cluster, clusters.cluster) is not null
        and samples.ts >= from_ms(build_from_ms() - reading_margin_ms())
        and samples.ts <= from_ms(build_to_ms() + reading_margin_ms())
),

-- more than a megawatt is no server: such a reading is not believed
known as (
    select source, cluster, node, start_ms, end_ms, round(power_w * (end_ms - start_ms))::bigint as energy_mj
    from readings
    where
        end_ms > start_ms
        and end_ms - start_ms <= reading_margin_ms()
        and power_w between 0 and 1e6
),

by_hour as (
    select
        *,
        unnest(range(start_ms // one_hour_ms(), (end_ms - 1) // one_hour_ms() + 1)) * one_hour_ms() as hour_ms
    from known
),

of_meters as (
    select
        source,
        cluster,
        node,
        hour_ms,
        min(greatest(by_hour.start_ms, hour_ms)) as start_ms,
        max(least(by_hour.end_ms, hour_ms + one_hour_ms())) as end_ms,
        count(*) as readings,
        sum(part_mj(
            energy_mj, by_hour.start_ms, by_hour.end_ms,
            greatest(by_hour.start_ms, hour_ms), least(by_hour.end_ms, hour_ms + one_hour_ms())
        )) as energy_mj
    from by_hour
    where hour_ms >= build_from_ms() and hour_ms < build_to_ms()
    group by source, cluster, node, hour_ms
    having
        sum(least(by_hour.end_ms, hour_ms + one_hour_ms()) - greatest(by_hour.start_ms, hour_ms))
        = max(least(by_hour.end_ms, hour_ms + one_hour_ms())) - min(greatest(by_hour.start_ms, hour_ms))
)

select cluster, node, hour_ms, start_ms, end_ms, energy_mj::bigint as energy_mj
from of_meters
-- of several meters the one that covers most of the hour is used, of those the one with most readings
qualify row_number() over (
    partition by cluster, node, hour_ms order by end_ms - start_ms desc, readings desc, source
) = 1
