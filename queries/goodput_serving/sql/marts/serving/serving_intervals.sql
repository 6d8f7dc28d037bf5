-- What the scope's serving engines did between one reading and the next, at most an hour. Counters: their increase; one that
-- is lower than before was reset, and counts again from 0. Gauges: at the end. Null: not reported.
-- grain: cluster, endpoint, engine, model, end_ms
-- access: team
-- skip_if_empty: raw.serving_samples
-- engine: index inside the endpoint; '': it has one
-- model: as requests name it; '': the series does not say
-- input_tokens: of prompts, those found in the prefix cache included, as engines count them
-- requests_finished: that ended, whatever the reason; requests_failed: of them
-- prefix_cache_queries, prefix_cache_hits: tokens
with readings as (
    select
        cluster,
        endpoint,
        engine,
        model,
        source,
        ts_ms,
        any_value(product) as product,
        max(role) as role,
        count(*) as readings,
        max(value) filter (where metric = 'prompt_tokens') as input_tokens,
        max(value) filter (where metric = 'generation_tokens') as output_tokens,
        max(value) filter (where metric = 'requests_finished') as requests_finished,
        max(value) filter (where metric = 'requests_failed') as requests_failed,
        max(value) filter (where metric = 'preemptions') as preemptions,
        max(value) filter (where metric = 'prefix_cache_queries') as prefix_cache_queries,
        max(value) filter (where metric = 'prefix_cache_hits') as prefix_cache_hits,
        max(value) filter (where metric = 'kv_offload_bytes') as kv_offload_bytes,
        max(value) filter (where metric = 'kv_transfer_bytes') as kv_transfer_bytes,
        max(value) filter (where metric = 'kv_transfer_s') as kv_transfer_s,
        max(value) filter (where metric = 'kv_load_s') as kv_load_s,
        max(value) filter (where metric = 'model_load_s') as model_load_s,
        max(value) filter (where metric = 'requests_running') as requests_running,
        max(value) filter (where metric = 'requests_waiting') as requests_waiting,
        max(value) filter (where metric = 'kv_cache_ratio') as kv_cache_ratio,
        max(value) filter (where metric = 'batch_size') as batch_size,
        max(value) filter (where metric = 'engine_asleep') as engine_asleep
    from staging.stg_serving_samples
    where
        ts >= from_ms(scope_from_ms() - one_hour_ms())
        and ts <= scope_to_at()
        and metric in (
            'prompt_tokens', 'generation_tokens', 'requests_finished', 'requests_failed',
            'preemptions', 'prefix_cache_queries', 'prefix_cache_hits',
            'kv_offload_bytes', 'kv_transfer_bytes', 'kv_transfer_s', 'kv_load_s', 'model_load_s',
            'requests_running', 'requests_waiting', 'kv_cache_ratio', 'batch_size', 'engine_asleep'
        )
    group by cluster, endpoint, engine, model, source, ts_ms
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
        select cluster, endpoint, engine, source, nullif(max(model), '') as model, sum(readings) as readings
        from readings
        group by cluster, endpoint, engine, source, nullif(model, '')
    )
    group by cluster, endpoint, engine
),

-- numbers are quicker to sort by than names
series as (
    select
        readings.cluster,
        readings.endpoint,
        readings.engine,
        readings.model,
        readings.source,
        -- gauges of the engine may name no model
        coalesce(nullif(readings.model, ''), any_value(sources.only_model), '') as of_model,
        row_number() over ()::integer as series
    from readings
    inner join sources using (cluster, endpoint, engine, source)
    semi join marts.serving_endpoints as endpoints
        on readings.cluster = endpoints.cluster and readings.endpoint = endpoints.endpoint
    group by readings.cluster, readings.endpoint, readings.engine, readings.model, readings.source
),

changes as (
    select
        series.cluster,
        series.endpoint,
        series.engine,
        series.of_model as model,
        readings.product,
        readings.role,
        lag(readings.ts_ms) over in_order as start_ms,
        readings.ts_ms as end_ms,
        -- counters, by the ends of their names
        counter_increase(
            columns('_(tokens|finished|failed|queries|hits|bytes|s)$|^preemptions$'),
            lag(columns('_(tokens|finished|failed|queries|hits|bytes|s)$|^preemptions$') ignore nulls) over in_order
        ),
        readings.requests_running,
        readings.requests_waiting,
        readings.kv_cache_ratio,
        readings.batch_size,
        readings.engine_asleep
    from readings
    inner join series using (cluster, endpoint, engine, model, source)
    window in_order as (partition by series.series order by readings.ts_ms)
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
    sum(columns('_(tokens|finished|failed|queries|hits|bytes|s)$|^preemptions$')),
    max(columns(['requests_running', 'requests_waiting', 'kv_cache_ratio', 'batch_size', 'engine_asleep']))
from changes
where end_ms - start_ms <= one_hour_ms() and end_ms > scope_from_ms()
group by cluster, endpoint, engine, model, end_ms
