-- Rejected rows with the reason.
-- grain: source, origin, line, reason, content
create table raw.rejects (
    source varchar not null,
    origin varchar not null,            -- file or URL
    line bigint,                        -- from 1; null for a whole file
    reason varchar not null,
    content varchar                     -- the row itself, capped
);
