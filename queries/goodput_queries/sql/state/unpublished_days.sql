-- Days that builds of a lake changed since they were last written back to it.
-- grain: table_name, cluster, day
create table state.unpublished_days (
    table_name varchar not null,        -- in the lake: ledger_hourly, gpu_metrics
    cluster varchar not null,
    day date not null,
    sequence bigint not null            -- the last load of the build that changed it
);
