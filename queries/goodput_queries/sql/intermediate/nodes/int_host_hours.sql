-- TCP segments of hosts hour by hour.
-- grain: source, cluster, node, hour_ms
-- tcp_sent_segments, tcp_retransmitted_segments: counters: first, last, gain (increase inside the hour) and n
-- materialised: hourly, since the page of the network looks at all hosts of the fleet
-- skip_if_empty: raw.node_samples
select
    source,
    cluster,
    node,
    ts_ms // one_hour_ms() * one_hour_ms() as hour_ms,
    count(*)::integer as samples,
    rolled_up_counter(tcp_sent_segments, ts) as tcp_sent_segments,
    rolled_up_counter(tcp_retransmitted_segments, ts) as tcp_retransmitted_segments
from staging.stg_host_samples
where ts >= from_ms(build_from_ms()) and ts < from_ms(build_to_ms())
group by source, cluster, node, ts_ms // one_hour_ms()
