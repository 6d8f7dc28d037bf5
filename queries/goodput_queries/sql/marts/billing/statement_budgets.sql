-- Monthly budgets and GPU quotas of accounts, as valid at the start of the scope's window.
-- grain: cluster, account
-- cluster: empty: all clusters together
-- cost_per_month, quota_gpus: null: none is set
with in_force as (
    select *
    from staging.stg_budgets
    where
        from_ms <= coalesce(chosen_from_ms(), forever_ms())
        and to_ms > scope_from_ms()
)

select
    coalesce(cluster, '') as cluster,
    account,
    arg_max(cost_per_month, from_ms) filter (where cost_per_month is not null) as cost_per_month,
    arg_max(quota_gpus, from_ms) filter (where quota_gpus is not null) as quota_gpus
from in_force
group by all
