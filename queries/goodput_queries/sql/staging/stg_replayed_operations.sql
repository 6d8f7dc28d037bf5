-- Operations of one step of a trace, as recorded and in the ideal step.
-- grain: source, trace_id, stage, operation, place
select * exclude (load_sequence) from raw.replayed_operations
