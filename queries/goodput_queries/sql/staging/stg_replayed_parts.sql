-- Mean steps of a trace with one worker, stage or kind of operation as recorded; and the time of each step.
-- grain: source, trace_id, part, dp_rank, stage, operation, step
select source, trace_id, part, dp_rank, stage, operation, step, step_s from raw.replayed_parts
