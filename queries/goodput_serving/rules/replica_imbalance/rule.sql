-- skip_if_empty: marts.serving_engines
-- Replicas are the engines of a model and a role in a cluster.
with loads as (
    select
        cluster,
        replicas_name(model, role) as replicas,
        count(*) as engines,
        arg_max(engine_name(endpoint, engine), running_requests + waiting_requests) as highest_name,
        arg_max(run_key, running_requests + waiting_requests) as run_key,
        max(running_requests + waiting_requests) as highest,
        (sum(running_requests + waiting_requests) - highest) / (count(*) - 1) as others,
        max(start_ms) as since_ms,
        min(end_ms) as until_ms
    from marts.serving_engines
    where role <> 'frontend' and running_requests + waiting_requests is not null
    group by cluster, model, role
    having count(*) > 1
)

select
    cluster,
    run_key,
    replicas as detail,
    from_ms(since_ms) as start_at,
    from_ms(until_ms) as end_at,
    'Confirmed' as confidence,
    replicas || ': ' || highest_name || ' has ' || printf('%.1f', highest) || ' requests on average, the other '
        || counted(engines - 1, 'replica') || ' ' || printf('%.1f', others) as evidence
from loads
where
    highest >= threshold('replica_imbalance_ratio') * others
    and highest - others >= threshold('replica_imbalance_requests')
    and until_ms - since_ms >= threshold('serving_min_ms')
