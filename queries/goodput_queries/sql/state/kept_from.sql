-- Start of the retained time of a table; retention dropped older rows (retention.py).
-- grain: table_name
create table state.kept_from (
    table_name varchar not null,        -- gpu_samples, collectives, ledger_segments
    kept_from_ms bigint not null        -- start of a day in UTC
);
