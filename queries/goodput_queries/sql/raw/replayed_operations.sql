-- Operations of the slowest data parallel rank in one step of a trace, as recorded and in the ideal step.
-- grain: source, trace_id, stage, operation, place
create table raw.replayed_operations (
    source varchar not null,
    trace_id varchar not null,          -- of raw.step_replays
    step bigint not null,               -- the one nearest to the median
    dp_rank integer not null,           -- whose compute ends last
    stage integer not null,
    operation varchar not null,
    place integer not null,             -- among those of its kind and stage, from 0
    start_s double not null,            -- after the start of the step
    end_s double not null,
    ideal_start_s double not null,
    ideal_end_s double not null,
    load_sequence bigint not null       -- state.ingested: the load that wrote the row as it is
);
