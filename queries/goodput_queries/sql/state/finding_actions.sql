-- What people said of findings. It is no evidence: rebuilds leave it alone, and it changes no number.
-- grain: finding_key, said_at
create table state.finding_actions (
    finding_key varchar not null,
    action varchar not null,            -- acknowledge, dismiss, reopen, note
    since_ms bigint not null,           -- of the finding as they saw it
    until_ms bigint,                    -- null: all later ones of the same rule and subject too
    said_by varchar not null,
    note varchar,                       -- the reason of a dismissal is required
    said_at timestamp not null,
    rule varchar                        -- null: said before it was kept
);
