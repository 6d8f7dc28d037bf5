-- What the scope's engines did for each model over time, in buckets of the scope's bucket_ms (an hour unless set). An interval
-- between two readings belongs to the bucket in which it ends. Frontends count where no engine reports.
-- grain: cluster, model, bucket_ms
-- access: team
-- evaluated: first
-- output_tokens_per_s, input_tokens_per_s: of all engines together: sum of their rates in the bucket
-- running_requests, waiting_requests: sum of the engines' means; kv_cache_ratio: mean; kv_cache_max_ratio: of any engine
-- engines: that reported
with engines as (
    select
        cluster,
        model,
        endpoint,
        engine,
        max(role) as role,
        bucket_start(end_ms - 1) as bucket_ms,
        sum(output_tokens) / sum(end_ms - start_ms) * 1000 as output_tokens_per_s,
        sum(input_tokens) / sum(end_ms - start_ms) * 1000 as input_tokens_per_s,
        avg(requests_running) as running_requests,
        avg(requests_waiting) as waiting_requests,
        avg(kv_cache_ratio) as kv_cache_ratio,
        max(kv_cache_ratio) as kv_cache_max_ratio,
        sum(preemptions) as preemptions
    from marts.serving_intervals
    group by all
),

roles as (
    select
        cluster, model,
        bool_or(role <> 'frontend') as has_engine, bool_or(role = 'prefill') as has_prefill, bool_or(role = 'decode') as has_decode
    from engines
    group by cluster, model
)

select
    engines.cluster,
    engines.model,
    engines.bucket_ms,
    count(*) as engines,
    sum(engines.output_tokens_per_s) filter (where not (engines.role = 'prefill' and roles.has_decode)) as output_tokens_per_s,
    sum(engines.input_tokens_per_s) filter (where not (engines.role = 'decode' and roles.has_prefill)) as input_tokens_per_s,
    sum(columns(['running_requests', 'waiting_requests', 'preemptions'])),
    avg(engines.kv_cache_ratio) as kv_cache_ratio,
    max(engines.kv_cache_max_ratio) as kv_cache_max_ratio
from engines
inner join roles using (cluster, model)
where engines.role <> 'frontend' or not roles.has_engine
group by engines.cluster, engines.model, engines.bucket_ms
