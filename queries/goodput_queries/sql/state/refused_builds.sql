-- Invariants that the last build broke: it was rolled back, and the ledger is that of the build before it. Empty once a build
-- is published.
-- grain: invariant
create table state.refused_builds (
    sequence bigint not null,           -- state.ingested: the last load that the build had
    refused_at timestamp not null,
    invariant varchar not null,         -- what does not hold
    n bigint not null,                  -- rows that break it
    example varchar not null            -- the first of them: names, times and amounts
);
