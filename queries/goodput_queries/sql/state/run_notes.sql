-- What people noted of runs. It is no evidence: rebuilds leave it alone, and it changes no number.
-- grain: run_key, said_at
create table state.run_notes (
    run_key varchar not null,
    note varchar not null,
    said_by varchar not null,
    said_at timestamp not null
);
