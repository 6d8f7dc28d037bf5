-- Latencies of each model over time, in buckets of the scope's bucket_ms (one bucket unless set), from histograms: of its
-- frontends, where they report the metric, else of its engines. The first requests after a start are in it.
-- grain: cluster, model, metric, bucket_ms
-- access: team
-- evaluated: first
-- p50_s, p99_s: interpolated; p50_low_s, p50_high_s, p99_low_s, p99_high_s: bounds of the bucket of the histogram
with sums as (
    select cluster, model, metric, bucket_ms, le_s, sum(observations)::bigint as observations, sum(readings) as readings
    from (
        select *
        from marts.serving_buckets
        where metric in ('ttft_s', 'inter_token_s', 'e2e_s')
        qualify (role = 'frontend') = bool_or(role = 'frontend') over (partition by cluster, model, metric)
    )
    group by cluster, model, metric, bucket_ms, le_s
    qualify sum(readings) = max(sum(readings)) over (partition by cluster, model, metric, bucket_ms)
),

histograms as (
    select
        cluster, model, metric, bucket_ms,
        list(le_s order by le_s) as bounds,
        list(observations order by le_s) as counts
    from sums
    group by cluster, model, metric, bucket_ms
    having max(observations) > 0
)

select
    * exclude (bounds, counts),
    counts[-1] as observations,
    quantile_estimate(bounds, counts, 0.5) as p50_s,
    quantile_low(bounds, counts, 0.5) as p50_low_s,
    quantile_high(bounds, counts, 0.5) as p50_high_s,
    quantile_estimate(bounds, counts, 0.99) as p99_s,
    quantile_low(bounds, counts, 0.99) as p99_low_s,
    quantile_high(bounds, counts, 0.99) as p99_high_s
from histograms
