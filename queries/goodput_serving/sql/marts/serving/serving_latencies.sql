-- Latencies of requests in the scope's window, by model, by role and by engine: quantiles with their bounds. Histograms say
-- between which bounds of a bucket a quantile lies; request logs say it exactly. A model's own row is of its frontends, where
-- they report the metric, else of its engines.
-- grain: level, cluster, model, role, endpoint, engine, metric, is_cold, method
-- access: team
-- skip_if_empty: marts.serving_endpoints
-- level: model, role, engine; role, endpoint, engine: null above their level
-- metric: ttft_s, inter_token_s, e2e_s, queue_s, prefill_s, decode_s; of logs ttft_s, e2e_s and per_output_token_s (the
--  mean time between the tokens of a request)
-- is_cold: of the first requests after an engine started
-- method: histogram, requests (exact)
-- observations: requests; of inter_token_s tokens
-- p50_s, p95_s, p99_s: interpolated inside the bucket; null: above the last finite bound
-- p50_low_s, p50_high_s ..: bounds of the bucket; high null: above the last finite bound
-- tail_ratio: p99 / p50; tail_low_ratio, tail_high_ratio: its bounds
with levels as (
    select
        'model' as level, cluster, model, null as role, null as endpoint, null as engine,
        metric, is_cold, le_s, observations, sum_s, readings
    from marts.serving_buckets
    qualify (role = 'frontend') = bool_or(role = 'frontend') over (partition by cluster, model, metric)
    union all
    select 'role', cluster, model, role, null, null, metric, is_cold, le_s, observations, sum_s, readings
    from marts.serving_buckets
    union all
    select 'engine', cluster, model, role, endpoint, engine, metric, is_cold, le_s, observations, sum_s, readings
    from marts.serving_buckets
),

sums as (
    select
        level, cluster, model, role, endpoint, engine, metric, is_cold, le_s,
        sum(observations)::bigint as observations,
        sum(sum_s) as sum_s
    from levels
    group by level, cluster, model, role, endpoint, engine, metric, is_cold, le_s
    -- of histograms with other bounds those that all of them have
    qualify sum(readings) = max(sum(readings)) over (
        partition by level, cluster, model, role, endpoint, engine, metric, is_cold
    )
),

histograms as (
    select
        level, cluster, model, role, endpoint, engine, metric, is_cold,
        list(le_s order by le_s) as bounds,
        list(observations order by le_s) as counts,
        max(sum_s) as sum_s
    from sums
    group by level, cluster, model, role, endpoint, engine, metric, is_cold
    having max(observations) > 0
),

requests as (
    select
        requests.cluster,
        requests.model,
        nullif(requests.endpoint, '') as endpoint,
        coalesce(endpoints.role, '') as role,
        requests.is_cold,
        requests.ttft_s,
        requests.e2e_s,
        requests.per_output_token_s
    from marts.serving_requests as requests
    inner join marts.serving_endpoints as endpoints using (cluster, endpoint)
),

values_of_requests as (
    unpivot requests on ttft_s, e2e_s, per_output_token_s into name metric value value_s
),

exact as (
    select
        case
            when grouping(role) = 1 then 'model'
            when grouping(endpoint) = 1 then 'role'
            else 'engine'
        end as level,
        cluster,
        model,
        role,
        endpoint,
        case when grouping(endpoint) = 0 then '' end as engine,
        metric,
        is_cold,
        count(*) as observations,
        avg(value_s) as mean_s,
        quantile_disc(value_s, [0.5, 0.95, 0.99]) as quantiles
    from values_of_requests
    group by grouping sets (
        (cluster, model, metric, is_cold), (cluster, model, role, metric, is_cold),
        (cluster, model, role, endpoint, metric, is_cold)
    )
),

quantiles as (
    select
        level, cluster, model, role, endpoint, engine, metric, is_cold,
        'histogram' as method,
        counts[-1] as observations,
        sum_s / counts[-1] as mean_s,
        quantile_estimate(bounds, counts, 0.5) as p50_s,
        quantile_low(bounds, counts, 0.5) as p50_low_s,
        quantile_high(bounds, counts, 0.5) as p50_high_s,
        quantile_estimate(bounds, counts, 0.95) as p95_s,
        quantile_low(bounds, counts, 0.95) as p95_low_s,
        quantile_high(bounds, counts, 0.95) as p95_high_s,
        quantile_estimate(bounds, counts, 0.99) as p99_s,
        quantile_low(bounds, counts, 0.99) as p99_low_s,
        quantile_high(bounds, counts, 0.99) as p99_high_s
    from histograms
    union all
    select
        level, cluster, model, role, endpoint, engine, metric, is_cold, 'requests', observations, mean_s,
        quantiles[1], quantiles[1], quantiles[1],
        quantiles[2], quantiles[2], quantiles[2],
        quantiles[3], quantiles[3], quantiles[3]
    from exact
    where level <> 'engine' or endpoint is not null
)

select
    *,
    p99_s / nullif(p50_s, 0) as tail_ratio,
    p99_low_s / nullif(p50_high_s, 0) as tail_low_ratio,
    p99_high_s / nullif(p50_low_s, 0) as tail_high_ratio
from quantiles
