-- Who did what: sign-ins, changes of prices and of findings, downloads of statements, retired sources.
-- It is no evidence: rebuilds leave it alone, and it changes no number.
-- grain: entry_id
create table state.audit_log (
    entry_id varchar not null,
    acted_at timestamp not null,
    who varchar not null,               -- the name of the sign-in; on a terminal the user; '': nobody signed in
    action varchar not null,
    subject varchar,                    -- what it was done to
    from_address varchar,               -- null: a command on the machine of the database
    entry_number bigint,                -- from 1 on, without a gap; null: written before entries were a chain
    digest varchar                      -- SHA-256 of the entry and of the digest before (goodput_queries/audit.py)
);
