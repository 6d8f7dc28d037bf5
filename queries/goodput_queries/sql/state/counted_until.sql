-- Which hours of each cluster are in state.counted_gpu_time. They are counted once: no build changes it.
-- grain: cluster
create table state.counted_until (
    cluster varchar not null,
    from_ms bigint not null,            -- start of the first hour
    until_ms bigint not null            -- end of the last hour
);
