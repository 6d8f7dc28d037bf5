-- Operations in Flight Recorder dumps, with times in epoch ms.
-- grain: dump_set, rank, record_id, created_ms
-- dump_set: with the cluster, where it was said
select
    coalesce(cluster || ':', '') || dump_set as dump_set,
    rank,
    group_name,
    record_id,
    sequence_number,
    p2p_sequence_number,
    operation,
    is_p2p,
    state,
    to_ms(created_at) as created_ms,
    timeout_s * 1000 as timeout_ms,
    input_dtype,
    input_elements,
    message_bytes
from raw.flight_records
