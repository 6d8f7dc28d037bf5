-- The readings of one GPU by one source: from when to when. Beside the raw rows, since it outlives those that are
-- dropped by age. Written by the build, which adds what is new.
-- grain: source, gpu_uuid, gpu_instance
create table raw.reading_series (
    source varchar not null,
    gpu_uuid varchar not null,
    gpu_instance varchar not null,
    series ubigint not null,            -- hash of the three: sorts and joins faster than they do
    first_ms bigint not null,
    last_ms bigint not null
);
