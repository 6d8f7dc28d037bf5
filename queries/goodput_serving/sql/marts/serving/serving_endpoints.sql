-- Serving endpoints of the scope: processes that answer requests and report metrics, or that a request log names. An endpoint
-- whose GPUs nobody knows is of no team: who sees some teams only does not see it.
-- grain: cluster, endpoint
-- access: team
-- skip_if_empty: raw.serving_histograms, raw.serving_requests, raw.serving_samples, intermediate.int_serving_gpus
-- role: prefill, decode, frontend, both; null: the metrics do not say
-- gpus: number of GPUs in the window; null: not known
-- team, user_name, run_key: who held its GPUs; null: nobody, or several
with reported as (
    select cluster, endpoint, node, role, product, pod, namespace
    from staging.stg_serving_samples
    where
        ts >= from_ms(scope_from_ms() - one_hour_ms())
        and ts <= scope_to_at()
    union all
    select cluster, endpoint, node, role, product, pod, namespace
    from staging.stg_serving_histograms
    where
        isinf(le_s)
        and ts >= from_ms(scope_from_ms() - one_hour_ms())
        and ts <= scope_to_at()
    union all
    select distinct cluster, endpoint, null, '', null, null, null
    from staging.stg_serving_requests
    where
        arrival_at >= from_ms(scope_from_ms() - one_day_ms())
        and arrival_at <= scope_to_at()
),

endpoints as (
    select
        cluster,
        endpoint,
        max(columns(['node', 'product', 'pod', 'namespace'])),
        max(nullif(role, '')) as role
    from reported
    group by cluster, endpoint
),

holders as (
    select
        cluster,
        endpoint,
        any_value(node) as node,
        count(distinct gpu_uuid) as gpus,
        case when count(distinct team) = 1 then any_value(team) end as team,
        case when count(distinct user_name) = 1 then any_value(user_name) end as user_name,
        case when count(distinct run_key) = 1 then any_value(run_key) end as run_key,
        case when count(distinct run_key) = 1 then any_value(run_id) end as run_id,
        bool_or(in_scope(cluster, node, gpu_uuid, gpu_model, team, user_name, run_key, partition)) as is_in_scope
    from marts.serving_gpus
    group by cluster, endpoint
),

-- whose GPUs teams held in turn, that the reader does not all see, is nobody's
withheld as (
    select distinct maps.cluster, maps.endpoint
    from intermediate.int_serving_gpus as maps
    inner join intermediate.int_job_run_owners as owners using (job_run_key)
    where not of_teams(owners.team)
)

select
    endpoints.* exclude (node),
    coalesce(endpoints.node, holders.node) as node,
    holders.* exclude (cluster, endpoint, node, is_in_scope)
from endpoints
left join holders using (cluster, endpoint)
anti join withheld using (cluster, endpoint)
where
    case
        when holders.endpoint is not null then holders.is_in_scope
        else in_scope(endpoints.cluster, endpoints.node, null, null, null, null, null, null)
    end
