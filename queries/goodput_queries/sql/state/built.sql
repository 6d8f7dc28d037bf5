-- What the last build covers: how far the evidence of each cluster reached, and the last load. One row has no cluster, so
-- that a build without evidence is recorded too. Empty: the next build is a full build.
-- grain: cluster
create table state.built (
    cluster varchar,
    as_of_ms bigint,
    sequence bigint                     -- state.ingested: the last load
);
