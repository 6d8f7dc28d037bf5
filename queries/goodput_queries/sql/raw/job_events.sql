-- Job events, one schema for every log format (job events v1).
-- grain: source, cluster, run_id, attempt, rank, host, pid, ts, event, step, phase, kind
-- times: by ts
create table raw.job_events (
    source varchar not null,
    cluster varchar,
    run_id varchar not null,            -- '' where the job did not say
    attempt integer,
    rank integer,
    local_rank integer,
    host varchar,
    pid bigint,
    gpu_uuid varchar,
    ts timestamp not null,
    event varchar not null,             -- job.start job.end step.start step phase phase.start phase.end ckpt.durable failure metric
    step bigint,
    dur_s double,
    phase varchar,
    data_s double,
    comm_s double,
    straggler_s double,
    throttle_s double,
    fwd_s double,                       -- parts of the step: forward, backward, optimizer
    bwd_s double,
    opt_s double,
    tokens double,                      -- of the step, of what reports it: a rank, or one for the gang
    flops double,                       -- model FLOPs of the step, without recomputed activations
    samples double,
    gpu_tokens double,                  -- of one GPU, where a log of the gang gives its rate per GPU
    gpu_flops double,
    mfu_ratio double,                   -- as the job works it out
    loss double,                        -- of a step; NaN and infinities as they are
    kind varchar,
    msg varchar,
    reports_durability boolean not null, -- false: this format cannot say that a checkpoint is durable
    extra json,                         -- fields that the schema does not name
    load_sequence bigint not null       -- state.ingested: the load that wrote the row as it is
);
