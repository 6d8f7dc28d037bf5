-- Recorded steps of a run, replayed with other lengths of their operations: means over the steps of one trace.
-- grain: source, trace_id
create table raw.step_replays (
    source varchar not null,
    cluster varchar,
    run_id varchar not null,
    trace_id varchar not null,          -- digest of the file, its run and cluster
    data_ranks integer not null,        -- data parallel ranks
    stages integer not null,            -- pipeline stages; a worker is a data parallel rank of a stage
    steps integer not null,             -- that are whole in the trace
    recorded_s double not null,         -- as recorded
    undelayed_s double not null,        -- each operation starts when all that it waits for has ended
    compute_s double not null,          -- further: communication at its ideal
    worker_means_s double not null,     -- further: compute of each worker at its mean
    stage_means_s double not null,      -- further: compute of each stage at its mean
    ideal_s double not null,            -- compute at the mean, communication at the median of all
    slowest_stage integer not null,     -- that costs most alone
    without_slowest_stage_s double not null,   -- undelayed, its operations at the ideal
    without_slowest_workers_s double not null, -- undelayed, those of the slowest 3 % of workers at the ideal
    forward_backward_correlation double,       -- of the lengths of one micro-batch, inside stages; null: constant
    load_sequence bigint not null       -- state.ingested: the load that wrote the row as it is
);
