-- From when to when there are readings of a GPU, those dropped by age included.
-- grain: gpu_uuid
-- written_by: build.py, which adds the readings of each build to it
create table intermediate.int_gpu_reading_spans (
    gpu_uuid varchar not null,
    first_ms bigint not null,
    last_ms bigint not null
);
