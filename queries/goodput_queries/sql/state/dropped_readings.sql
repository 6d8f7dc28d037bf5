-- Number of readings in each hour that retention dropped: all must be ingested again before the hour is unfrozen
-- (retention.py).
-- grain: source, hour_ms
create table state.dropped_readings (
    source varchar not null,
    hour_ms bigint not null,
    rows bigint not null
);
