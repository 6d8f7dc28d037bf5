-- Engines of serving endpoints that were there in this pass.
-- grain: engine_id
-- engine_id: number of the cluster, endpoint and engine
select
    cast(row_number() over (order by cluster, endpoint, engine) as integer) as engine_id,
    cluster,
    endpoint,
    engine
from (
    select cluster, endpoint, engine, min(first_ms) as first_ms, max(last_ms) as last_ms
    from staging.stg_serving_endpoints
    where role <> 'frontend' and endpoint <> ''
    group by cluster, endpoint, engine
    -- a request log names no engine: where the engines are known it counts for each of them
    qualify bool_or(has_samples) or not bool_or(bool_or(has_samples)) over (partition by cluster, endpoint)
)
where
    first_ms < build_to_ms() + threshold('serving_gap_max_ms')
    and last_ms > build_from_ms() - one_hour_ms()
