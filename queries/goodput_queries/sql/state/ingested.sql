-- Loads: a part of a file or of an answer, committed together with its rows.
-- grain: source, digest, table_name
create table state.ingested (
    sequence bigint not null,           -- order of commits
    source varchar not null,
    origin varchar not null,
    digest varchar not null,            -- of the part's content
    table_name varchar not null,
    rows bigint not null,               -- rows read
    rows_new bigint not null,           -- rows that were not there before
    rejects bigint not null,            -- rejected rows that were not there before
    window_start_at timestamp,
    window_end_at timestamp,
    loaded_at timestamp not null
);
