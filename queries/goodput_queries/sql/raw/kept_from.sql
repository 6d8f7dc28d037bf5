-- From when on rows are kept; what is older was dropped by age (retention.py).
-- grain: table_name
create table raw.kept_from (
    table_name varchar not null,        -- gpu_samples, collectives, ledger_segments
    kept_from_ms bigint not null        -- start of a day in UTC
);
