-- Job logs that named no cluster and were taken as of the only one of the database, where its accounting has one job of
-- their id. Likely, not certain. Builds add to it.
-- grain: cluster, run_id
create table state.claimed_logs (
    cluster varchar not null,
    run_id varchar not null
);
