-- One bucket of a histogram of a serving engine, under its canonical name in `reference.serving_metrics`. Counts are
-- cumulative over buckets and over the life of the engine: a restart sets them to 0.
-- grain: source, cluster, endpoint, engine, model, metric, ts, le_s
-- times: by ts
create table raw.serving_histograms (
    source varchar not null,
    cluster varchar,                    -- null: found through the node
    endpoint varchar not null,          -- the process that answers: '<namespace>/<pod>:<port>', else host:port as scraped
    node varchar,
    pod varchar,
    namespace varchar,
    pid bigint,
    gpu_labels varchar[],               -- GPUs of the engine, where a label names them: UUIDs, or numbers on the node
    engine varchar not null,            -- index inside the endpoint; '': it has one, or does not say
    model varchar not null,             -- as requests name it; '': the series does not say
    role varchar not null,              -- prefill, decode, frontend, both; '': not known
    product varchar not null,           -- vllm, sglang, tensorrt-llm, triton, tgi, dynamo, inference-gateway
    metric varchar not null,
    ts timestamp not null,
    le_s double not null,               -- inclusive upper bound; infinity: all observations
    observations bigint not null,       -- up to the bound
    sum_s double,                       -- of all observations, in the row of infinity alone; null: not reported
    load_sequence bigint not null       -- state.ingested: the load that wrote the row as it is
);
