-- Monthly budgets and GPU quotas of accounts, with whole validity.
-- grain: none (a later row replaces the same value of an earlier one)
-- cluster: null: over all clusters
select
    cluster,
    account,
    cost_per_month,
    quota_gpus,
    coalesce(to_ms(valid_from_at), 0) as from_ms,
    coalesce(to_ms(valid_to_at), forever_ms()) as to_ms
from raw.budgets
