-- How many readings each hour had that was dropped by age: so many are to come back before it is reopened
-- (retention.py).
-- grain: source, hour_ms
create table raw.dropped_readings (
    source varchar not null,
    hour_ms bigint not null,
    rows bigint not null
);
