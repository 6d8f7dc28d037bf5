-- Statements of closed days: number 0 is the statement itself, higher ones are corrections to it. What is here is
-- never changed: late evidence adds a row.
-- grain: from_at, to_at, number
create table billing.statement_days (
    source varchar not null,
    day date not null,                  -- on which it begins in its zone
    zone varchar not null,
    from_at timestamp not null,
    to_at timestamp not null,
    number integer not null,
    evidence_at timestamp not null,     -- how far the evidence of all its clusters reached
    rows_id varchar not null,           -- of its rows in billing.statement_rows
    digest varchar not null,            -- of what was billed, row by row
    billed_cost decimal(18, 2) not null,
    policy varchar not null             -- JSON: who carries idle time, what is credited
);
