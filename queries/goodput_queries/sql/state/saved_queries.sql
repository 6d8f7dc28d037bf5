-- Selects that people saved on the Query page; the latest row of a key holds. It is no evidence.
-- grain: query_key, saved_at
create table state.saved_queries (
    query_key varchar not null,
    name varchar not null,
    meaning varchar not null,           -- what its rows are
    sql varchar,                        -- null: it was deleted
    is_shared boolean not null,         -- everybody who signs in sees it; else who saved it
    saved_by varchar not null,
    saved_at timestamp not null
);
