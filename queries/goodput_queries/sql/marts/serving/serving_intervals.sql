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
        max(value) filter (where metric = 'prompt_tokens') as prompt_tokens,
        max(value) filter (where metric = 'generation_tokens') as generation_tokens,
        max(value) filter (where metric = 'requests_finished') as requests_finished,
        max(value) filter (where metric = 'requests_failed') as requests_failed,
        max(value) filter (where metric = 'requests_within_objective') as requests_within_objective,
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
        and ts <= from_ms(coalesce(chosen_to_ms(), 9223372036854775))
        and metric in (
            'prompt_tokens', 'generation_tokens', 'requests_finished', 'requests_failed',
            'requests_within_objective', 'preemptions', 'prefix_cache_queries', 'prefix_cache_hits',
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
        counter_increase(readings.prompt_tokens, lag(readings.prompt_tokens ignore nulls) over in_order) as input_tokens,
        counter_increase(readings.generation_tokens, lag(readings.generation_tokens ignore nulls) over in_order) as output_tokens,
        counter_increase(readings.requests_finished, lag(readings.requests_finished ignore nulls) over in_order) as requests_finished,
        counter_increase(readings.requests_failed, lag(readings.requests_failed ignore nulls) over in_order) as requests_failed,
        counter_increase(readings.requests_within_objective, lag(readings.requests_within_objective ignore nulls) over in_order) as requests_within_objective,
        counter_increase(readings.preemptions, lag(readings.preemptions ignore nulls) over in_order) as preemptions,
        counter_increase(readings.prefix_cache_queries, lag(readings.prefix_cache_queries ignore nulls) over in_order) as prefix_cache_queries,
        counter_increase(readings.prefix_cache_hits, lag(readings.prefix_cache_hits ignore nulls) over in_order) as prefix_cache_hits,
        counter_increase(readings.kv_offload_bytes, lag(readings.kv_offload_bytes ignore nulls) over in_order) as kv_offload_bytes,
        counter_increase(readings.kv_transfer_bytes, lag(readings.kv_transfer_bytes ignore nulls) over in_order) as kv_transfer_bytes,
        counter_increase(readings.kv_transfer_s, lag(readings.kv_transfer_s ignore nulls) over in_order) as kv_transfer_s,
        counter_increase(readings.kv_load_s, lag(readings.kv_load_s ignore nulls) over in_order) as kv_load_s,
        counter_increase(readings.model_load_s, lag(readings.model_load_s ignore nulls) over in_order) as model_load_s,
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
    sum(input_tokens) as input_tokens,
    sum(output_tokens) as output_tokens,
    sum(requests_finished) as requests_finished,
    sum(requests_failed) as requests_failed,
    sum(requests_within_objective) as requests_within_objective,
    sum(preemptions) as preemptions,
    sum(prefix_cache_queries) as prefix_cache_queries,
    sum(prefix_cache_hits) as prefix_cache_hits,
    sum(kv_offload_bytes) as kv_offload_bytes,
    sum(kv_transfer_bytes) as kv_transfer_bytes,
    sum(kv_transfer_s) as kv_transfer_s,
    sum(kv_load_s) as kv_load_s,
    sum(model_load_s) as model_load_s,
    max(requests_running) as requests_running,
    max(requests_waiting) as requests_waiting,
    max(kv_cache_ratio) as kv_cache_ratio,
    max(batch_size) as batch_size,
    max(engine_asleep) as engine_asleep
from changes
where end_ms - start_ms <= one_hour_ms() and end_ms > scope_from_ms()
group by cluster, endpoint, engine, model, end_ms
