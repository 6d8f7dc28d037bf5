-- Watermarks of job events by host: first and last time. A table of its own, since every build reads it. Builds update
-- it from new loads.
-- grain: cluster, host
-- cluster, host: null where events do not say
-- first_ms, last_ms: of the moments of events
create table state.event_hosts (
    cluster varchar,
    host varchar,
    first_ms bigint not null,
    last_ms bigint not null
);
