-- Power readings of servers by their own meters, with the time in epoch ms. A meter's first row may be without a reading;
-- readings of hosts without a meter are left out.
-- ts: to filter by: the zones of the table are known for it, not for what is computed from it
-- grain: source, cluster, node, ts_ms
-- cluster: null: to be found through the node
select source, cluster, node, ts, to_ms(ts) as ts_ms, power_w
from raw.node_samples
where power_w is not null or (cpu_total_s is null and memory_total_bytes is null)
