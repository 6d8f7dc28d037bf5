-- Values that the scope bar offers: those with GPU time in the window.
-- grain: kind, value, cluster
-- evaluated: first
-- access: team
-- gpu_ms: GPU time behind the value
with rows_ as materialized (
    select cluster, node, gpu_model, team, user_name, partition, run_key, run_id, sum(gpu_ms) as gpu_ms
    from marts.ledger_owned
    where is_by_node
    group by all
),

named as (
    select 'team' as kind, team as value, team as label, cluster, sum(gpu_ms) as gpu_ms
    from rows_ where team is not null group by all
    union all
    select 'user', user_name, user_name, cluster, sum(gpu_ms) from rows_ where user_name is not null group by all
    union all
    select 'node', node, node, cluster, sum(gpu_ms) from rows_ group by all
    union all
    select 'partition', partition, partition, cluster, sum(gpu_ms)
    from rows_ where partition is not null group by all
    union all
    select 'run', run_key, run_id, cluster, sum(gpu_ms) from rows_ where run_key is not null group by all
    union all
    select 'gpu_model', gpu_model, gpu_model, cluster, sum(gpu_ms)
    from rows_ where gpu_model is not null group by all
)

select kind, value, label, cluster, gpu_ms::bigint as gpu_ms from named
