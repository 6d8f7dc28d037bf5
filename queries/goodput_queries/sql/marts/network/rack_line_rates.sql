-- Bandwidth of racks to the outside, and how much of it their busiest hour took: traffic between nodes of one rack included,
-- since ports do not tell whom they talk to.
-- grain: cluster, rack, kind
-- skip_if_empty: intermediate.int_link_hours
-- nodes, ports: number of them; measured_ports: of them in the busiest hour, with a known share
-- line_bytes_per_s: sum of the line rates of the ports; null: not known of all
-- gpu_link_bytes_per_s: sum of the published NVLink rates of its GPUs, both directions; null: not known of all
-- busiest_at: hour with most traffic; busiest_bytes_per_s: of all its ports; busiest_ratio: of the line rates of the measured ports
with hours as (
    select
        cluster,
        rack,
        kind,
        hour_at,
        count(line_rate_ratio) as measured_ports,
        sum(bytes_per_s) as bytes_per_s,
        sum(bytes_per_s) / nullif(sum(speed_bytes_per_s) filter (where line_rate_ratio is not null), 0) as line_rate_ratio
    from marts.line_rates
    where rack is not null
    group by cluster, rack, kind, hour_at
),

ports as (
    select cluster, rack, kind, node, device, port, arg_max(speed_bytes_per_s, hour_at) as speed_bytes_per_s
    from marts.line_rates
    where rack is not null
    group by cluster, rack, kind, node, device, port
),

gpus as (
    select
        racks.cluster,
        racks.rack,
        case when count(peaks.gpu_link_bytes_per_s) = count(*) then sum(peaks.gpu_link_bytes_per_s) end as gpu_link_bytes_per_s
    from (
        select distinct cluster, node, gpu_uuid, gpu_model from intermediate.int_gpu_inventory where in_window(coalesce(start_ms, 0), end_ms)
    ) as inventory
    inner join staging.stg_node_racks as racks using (cluster, node)
    left join marts.gpu_model_peaks as peaks using (gpu_model)
    group by racks.cluster, racks.rack
),

sums as (
    select
        cluster,
        rack,
        kind,
        count(distinct node) as nodes,
        count(*) as ports,
        case when count(speed_bytes_per_s) = count(*) then sum(speed_bytes_per_s) end as line_bytes_per_s
    from ports
    group by cluster, rack, kind
)

select
    sums.*,
    gpus.gpu_link_bytes_per_s,
    busiest.hour_at as busiest_at,
    busiest.measured_ports,
    busiest.bytes_per_s as busiest_bytes_per_s,
    busiest.line_rate_ratio as busiest_ratio
from sums
left join (
    select * from hours qualify row_number() over (partition by cluster, rack, kind order by bytes_per_s desc nulls last, hour_at) = 1
) as busiest using (cluster, rack, kind)
left join gpus using (cluster, rack)
