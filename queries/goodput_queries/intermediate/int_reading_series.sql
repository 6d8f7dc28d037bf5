-- The readings of one GPU by one source: from when to when, those dropped by age included.
-- grain: source, gpu_uuid, gpu_instance
-- written_by: build.py, which adds the readings of each build to it
create table intermediate.int_reading_series (
    source varchar not null,
    gpu_uuid varchar not null,
    gpu_instance varchar not null,
    series ubigint not null,            -- hash of the three: sorts and joins faster than they do
    first_ms bigint not null,
    last_ms bigint not null
);
