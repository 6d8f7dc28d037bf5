-- Status of each live source after its last poll.
-- grain: source, origin
-- keep: replace
create table state.source_status (
    source varchar not null,
    origin varchar not null,            -- URL, folder or command asked
    asked_at timestamp not null,
    answered_at timestamp,              -- last success
    failing_since_at timestamp,         -- null: the last answer was good
    failures integer not null,          -- in a row
    error varchar,                      -- one sentence; with no failures: what is skipped
    interval_s double,
    retired_at timestamp                -- since when it is not reported; null again once it is asked
);
