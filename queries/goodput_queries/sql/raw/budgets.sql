-- Monthly budget and GPU quota of an account.
-- grain: cluster, account, valid_from_at
-- keep: replace
create table raw.budgets (
    source varchar not null,
    cluster varchar,                    -- null: over all clusters
    account varchar not null,
    cost_per_month decimal(18, 2),
    quota_gpus decimal(18, 6),          -- by what idle time is shared under the policy by_quota
    valid_from_at timestamp,            -- null: always
    valid_to_at timestamp,
    currency varchar,                   -- ISO 4217; null: that of the statement
    note varchar,
    load_sequence bigint not null       -- state.ingested: the load that wrote the row as it is
);
