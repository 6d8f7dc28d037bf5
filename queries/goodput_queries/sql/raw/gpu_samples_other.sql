-- Other metrics of GPUs in narrow form, under their canonical name where there is one.
-- grain: source, gpu_uuid, gpu_instance, ts, metric
-- times: by ts
create table raw.gpu_samples_other (
    source varchar not null,
    gpu_uuid varchar not null,
    gpu_instance varchar not null,
    ts timestamp not null,
    metric varchar not null,
    value double,
    load_sequence bigint not null       -- state.ingested: the load that wrote the row as it is
);
