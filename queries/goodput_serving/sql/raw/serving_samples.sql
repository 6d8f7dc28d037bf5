-- One value of a counter or gauge of a serving engine, under its canonical name in `reference.serving_metrics`. Counters are
-- as the engine counts them: a restart sets them to 0.
-- grain: source, cluster, endpoint, engine, model, metric, ts
-- times: by ts
create table raw.serving_samples (
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
    value double,
    ts timestamp not null,
    load_sequence bigint not null       -- state.ingested: the load that wrote the row as it is
);
