-- What people and credit rules add to statements: notes, disputes with what became of them, credits. Rows are only
-- added. A credit is money: the next statement that closes books it, see adjustment_id of billing.statement_rows.
-- grain: adjustment_id
create table billing.adjustments (
    source varchar not null,
    adjustment_id varchar not null,
    made_at timestamp not null,
    made_by varchar not null,           -- a person; of a rule of the settings: 'policy'
    kind varchar not null,              -- note, dispute, resolved, credit
    day date not null,                  -- which it is about; as billing.statement_days, with its bounds
    from_at timestamp not null,
    to_at timestamp not null,
    cluster varchar not null,
    account varchar not null,
    user_name varchar,                  -- null: all of the account
    line varchar,                       -- a run id, or a kind of line such as usage; null: all
    amount decimal(18, 2),              -- of a credit, above 0
    currency varchar,
    reason varchar not null,
    refers_to varchar,                  -- adjustment_id of the dispute
    outcome varchar                     -- of resolved: accepted, rejected
);
