-- Readings of metrics that have no column of their own, with the time in epoch ms.
-- ts: to filter by: the zones of the table are known for it, not for what is computed from it
-- grain: source, gpu_uuid, gpu_instance, ts_ms, metric
select source, gpu_uuid, gpu_instance, ts, to_ms(ts) as ts_ms, metric, value
from raw.gpu_samples_other
