-- NCCL kernels in PyTorch profiler traces, with the start in epoch ms.
-- grain: none (traces may overlap)
select
    cluster,
    trace_id,
    rank,
    pid,
    start_at,
    to_ms(start_at) as start_ms,
    duration_s,
    exposed_s,
    operation,
    message_bytes,
    group_name,
    ranks,
    sequence_number,
    place
from raw.profiled_collectives
