-- The hosts that events were told of: from when to when. Beside the raw rows, since every build asks it. Written by
-- the build, which adds what is new.
-- grain: cluster, host
-- cluster, host: null where events do not say
-- first_ms, last_ms: of the moments of events
create table raw.event_hosts (
    cluster varchar,
    host varchar,
    first_ms bigint not null,
    last_ms bigint not null
);
