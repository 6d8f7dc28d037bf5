-- The busiest hour of the ports of each rack: traffic between nodes of one rack included, since ports do not tell whom they
-- talk to.
-- grain: cluster, rack, kind
-- evaluated: first
-- rack: as the inventory names it; busiest_at: hour with most traffic; nodes, ports: number of them with a known share in it
-- line_bytes_per_s: sum of the line rates of these ports: what the rack can send and receive outside
-- bytes_per_s: of all these ports; line_rate_ratio: of their line rates
-- gpu_link_bytes_per_s: sum of the published NVLink rates of the rack's GPUs, both directions; null: not known of all
with gpus as (
    select
        racks.cluster,
        racks.rack,
        case when count(peaks.gpu_link_bytes_per_s) = count(*) then sum(peaks.gpu_link_bytes_per_s) end as gpu_link_bytes_per_s
    from (
        select distinct cluster, node, gpu_uuid, gpu_model
        from intermediate.int_gpu_inventory
        where in_window(coalesce(start_ms, 0), end_ms)
    ) as inventory
    inner join staging.stg_node_racks as racks using (cluster, node)
    left join marts.gpu_model_peaks as peaks using (gpu_model)
    group by racks.cluster, racks.rack
)

select
    rates.cluster,
    rates.rack,
    rates.kind,
    rates.hour_at as busiest_at,
    count(distinct rates.node) as nodes,
    count(*) as ports,
    sum(rates.speed_bytes_per_s) as line_bytes_per_s,
    sum(rates.bytes_per_s) as bytes_per_s,
    sum(rates.bytes_per_s) / sum(rates.speed_bytes_per_s) as line_rate_ratio,
    any_value(gpus.gpu_link_bytes_per_s) as gpu_link_bytes_per_s
from marts.line_rates as rates
left join gpus using (cluster, rack)
where rates.rack is not null and rates.line_rate_ratio is not null
group by rates.cluster, rates.rack, rates.kind, rates.hour_at
qualify row_number() over (
    partition by rates.cluster, rates.rack, rates.kind order by sum(rates.bytes_per_s) desc, rates.hour_at
) = 1
