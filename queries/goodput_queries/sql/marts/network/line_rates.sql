-- Network ports of the scope's nodes hour by hour, as share of their line rate. Hosts that no other source knows are not of
-- the fleet.
-- grain: cluster, node, kind, device, port, hour_at
-- evaluated: first
-- rack: null: not in the inventory
-- line_rate_ratio: what it received or sent, whichever is more, of what its speed allows; null: speed or ten minutes are not known
-- bytes_per_s: the rate that it is the share of; speed_bytes_per_s: line rate, in each direction
select
    hours.cluster,
    hours.node,
    racks.rack,
    hours.kind,
    hours.device,
    hours.port,
    from_ms(hours.hour_ms) as hour_at,
    hours.line_rate_ratio,
    hours.line_rate_ratio * hours.speed_bytes_per_s as bytes_per_s,
    hours.speed_bytes_per_s
from intermediate.int_link_hours as hours
semi join staging.stg_node_clusters as known on hours.node = known.node
left join staging.stg_node_racks as racks on hours.cluster = racks.cluster and hours.node = racks.node
where
    hours.hour_ms > scope_from_ms() - one_hour_ms()
    and hours.hour_ms < scope_to_ms()
    and in_place(hours.cluster, hours.node, null, null)
-- two sources of one port report one traffic
qualify row_number() over (
    partition by hours.cluster, hours.node, hours.kind, hours.device, hours.port, hours.hour_ms order by hours.samples desc, hours.source
) = 1
