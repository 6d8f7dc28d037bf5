-- Operations in Flight Recorder dumps, with times in epoch ms.
-- grain: dump_set, rank, record_id, created_ms
-- dump_set: with the cluster, where it was said
select
    * exclude (cluster, dump_set, group_description, created_at, timeout_s, load_sequence),
    coalesce(cluster || ':', '') || dump_set as dump_set,
    to_ms(created_at) as created_ms,
    timeout_s * 1000 as timeout_ms
from raw.flight_records
