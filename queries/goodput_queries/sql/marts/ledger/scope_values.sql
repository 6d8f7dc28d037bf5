-- Values that the scope bar offers: those with GPU time in the window.
-- grain: kind, value, cluster
-- evaluated: first
-- access: team
-- label: as it is shown; of a run whose id is a number, the name of its job with it
-- gpu_ms: GPU time behind the value
with rows_ as materialized (
    select cluster, node, gpu_model, team, user_name, partition, run_key, run_id, sum(gpu_ms) as gpu_ms
    from marts.ledger_scoped_by_node
    group by all
),

run_names as (
    select run_key, max(numbered_run_name(run_id, job_id, job_name)) as run_name
    from intermediate.int_job_run_owners
    where of_teams(team) and run_key in (select run_key from rows_)
    group by run_key
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
    select 'run', rows_.run_key, coalesce(run_names.run_name, rows_.run_id), rows_.cluster, sum(rows_.gpu_ms)
    from rows_
    left join run_names using (run_key)
    where rows_.run_key is not null
    group by all
    union all
    select 'gpu_model', gpu_model, gpu_model, cluster, sum(gpu_ms)
    from rows_ where gpu_model is not null group by all
)

select kind, value, label, cluster, gpu_ms::bigint as gpu_ms from named
