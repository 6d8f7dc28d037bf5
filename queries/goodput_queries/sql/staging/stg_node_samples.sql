-- Power readings of servers by their own meters, with the time in epoch ms.
-- ts: to filter by: the zones of the table are known for it, not for what is computed from it
-- grain: source, node, ts_ms
select source, node, ts, to_ms(ts) as ts_ms, power_w from raw.node_samples
