-- Watermarks of readings by GPU and source: first and last time. A table of its own, since it outlives readings that
-- retention drops. Builds update it from new loads.
-- grain: source, gpu_uuid, gpu_instance
create table state.reading_series (
    source varchar not null,
    gpu_uuid varchar not null,
    gpu_instance varchar not null,
    series ubigint not null,            -- hash of the three: sorts and joins faster than they do
    first_ms bigint not null,
    last_ms bigint not null
);
