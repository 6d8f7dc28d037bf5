-- The mean step of a replayed trace in which one part alone is as recorded, all else ideal; and the time of each step.
-- grain: source, trace_id, part, dp_rank, stage, operation, step
create table raw.replayed_parts (
    source varchar not null,
    trace_id varchar not null,          -- of raw.step_replays
    part varchar not null,              -- worker, stage, operation; step: all as recorded, without delays
    dp_rank integer,                    -- of a worker
    stage integer,                      -- of a worker or a stage
    operation varchar,                  -- kind of operation
    step bigint,                        -- number of a step
    step_s double not null,
    load_sequence bigint not null       -- state.ingested: the load that wrote the row as it is
);
