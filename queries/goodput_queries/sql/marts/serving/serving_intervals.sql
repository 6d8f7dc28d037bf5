-- What the scope's serving engines did between one reading and the next, at most an hour. Counters: their increase; one that
-- is lower than before was reset, and counts again from 0. Gauges: at the end. Null: not reported.
-- grain: cluster, endpoint, engine, model, end_ms
-- access: team
-- evaluated: first
-- skip_if_empty: raw.serving_samples
-- engine: index inside the endpoint; '': it has one
-- model: as requests name it; '': the series does not say
-- input_tokens: of prompts, those found in the prefix cache included, as engines count them
-- requests_finished: that ended, whatever the reason; requests_failed: of them
-- prefix_cache_queries, prefix_cache_hits: tokens
with readings as (
    select *
    from staging.stg_serving_samples
    where
        ts >= from_ms(coalesce(getvariable('scope_from_ms')::bigint, 0) - 3600000)
        and ts <= from_ms(coalesce(getvariable('scope_to_ms')::bigint, 9223372036854775))
),

-- of several sources the one with more readings
sources as (
    select
        cluster,
        endpoint,
        engine,
        arg_max(source, (readings, source)) as source,
        case when count(distinct model) = 1 then any_value(model) end as only_model
    from (
        select cluster, endpoint, engine, source, nullif(max(model), '') as model, count(*) as readings
        from readings
        group by cluster, endpoint, engine, source, nullif(model, '')
    )
    group by cluster, endpoint, engine
),

changes as (
    select
        readings.cluster,
        readings.endpoint,
        readings.engine,
        -- gauges of the engine may name no model
        coalesce(nullif(readings.model, ''), sources.only_model, '') as model,
        readings.product,
        readings.role,
        readings.metric,
        readings.value,
        counter_increase(readings.value, lag(readings.value) over series) as increase,
        lag(readings.ts_ms) over series as start_ms,
        readings.ts_ms as end_ms
    from readings
    inner join sources using (cluster, endpoint, engine, source)
    semi join marts.serving_endpoints as endpoints
        on readings.cluster = endpoints.cluster and readings.endpoint = endpoints.endpoint
    window series as (
        partition by readings.cluster, readings.endpoint, readings.engine, readings.model, readings.metric
        order by readings.ts_ms
    )
)

select
    cluster,
    endpoint,
    engine,
    model,
    any_value(product) as product,
    coalesce(any_value(nullif(role, '')), '') as role,
    max(start_ms) as start_ms,
    end_ms,
    sum(increase) filter (where metric = 'prompt_tokens') as input_tokens,
    sum(increase) filter (where metric = 'generation_tokens') as output_tokens,
    sum(increase) filter (where metric = 'requests_finished') as requests_finished,
    sum(increase) filter (where metric = 'requests_failed') as requests_failed,
    sum(increase) filter (where metric = 'requests_within_objective') as requests_within_objective,
    sum(increase) filter (where metric = 'preemptions') as preemptions,
    sum(increase) filter (where metric = 'prefix_cache_queries') as prefix_cache_queries,
    sum(increase) filter (where metric = 'prefix_cache_hits') as prefix_cache_hits,
    sum(increase) filter (where metric = 'kv_offload_bytes') as kv_offload_bytes,
    sum(increase) filter (where metric = 'kv_transfer_bytes') as kv_transfer_bytes,
    sum(increase) filter (where metric = 'kv_transfer_s') as kv_transfer_s,
    sum(increase) filter (where metric = 'kv_load_s') as kv_load_s,
    sum(increase) filter (where metric = 'model_load_s') as model_load_s,
    max(value) filter (where metric = 'requests_running') as requests_running,
    max(value) filter (where metric = 'requests_waiting') as requests_waiting,
    max(value) filter (where metric = 'kv_cache_ratio') as kv_cache_ratio,
    max(value) filter (where metric = 'batch_size') as batch_size,
    max(value) filter (where metric = 'engine_asleep') as engine_asleep
from changes
where start_ms is not null and end_ms > coalesce(getvariable('scope_from_ms')::bigint, 0)
group by cluster, endpoint, engine, model, end_ms
