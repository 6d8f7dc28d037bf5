-- Operations of one step of a trace, as recorded and in the ideal step.
-- grain: source, trace_id, stage, operation, place
select
    source, trace_id, step, dp_rank, stage, operation, place, start_s, end_s, ideal_start_s, ideal_end_s
from raw.replayed_operations
