-- Findings that a target of notifications was sent, or is about to be. It is no evidence: rebuilds leave it alone.
-- grain: target, finding_key, seen_at
-- keep: replace
create table state.notified_findings (
    target varchar not null,            -- name of the [[notify]] table
    finding_key varchar not null,
    seen_at timestamp not null,         -- when it was first seen open; an occurrence of its own each time
    cluster varchar,
    content varchar not null,           -- the finding as it was last sent, JSON
    first_id varchar,                   -- the first message about it; null: it waits for others of its group
    notified_at timestamp,              -- when the last message about it was written
    silenced varchar,                   -- acknowledged, dismissed: what people said of it
    ended_at timestamp                  -- it closed; null: it is open
);
