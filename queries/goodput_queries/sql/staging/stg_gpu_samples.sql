-- Readings of GPUs with the time in epoch ms.
-- place: in the order of the table: a load is stored series by series
-- ts: to filter by: the zones of the table are known for it, not for what is computed from it
-- grain: source, gpu_uuid, gpu_instance, ts_ms
select
    rowid as place,
    * exclude (is_flagged, load_sequence),
    to_ms(ts) as ts_ms,
    coalesce(is_flagged, false) as is_flagged
from raw.gpu_samples
