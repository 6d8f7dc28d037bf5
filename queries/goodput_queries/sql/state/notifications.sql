-- Notifications: a message is written before it is sent and marked afterwards, so that a restart loses and doubles none.
-- It is no evidence: rebuilds leave it alone.
-- grain: notification_id
-- keep: replace
create table state.notifications (
    notification_id varchar not null,   -- sent along, the same when it is sent again
    target varchar not null,            -- name of the [[notify]] table
    event varchar not null,             -- open, repeat, resolved
    recipient varchar not null,         -- the user whose job it is about; empty: everybody of the target
    answers_id varchar,                 -- the first message about these findings
    finding_keys varchar[] not null,
    content varchar not null,           -- the findings as they were then, JSON
    created_at timestamp not null,
    sent_at timestamp,                  -- null: not yet
    given_up_at timestamp,              -- it was not taken for a day
    attempts integer not null,
    next_attempt_at timestamp,
    recipients varchar[],               -- of a mail: who has it, the others get it later
    error varchar                       -- of the last attempt, a sentence
);
