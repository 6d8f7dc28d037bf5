-- Latency histograms of the scope's serving engines in the window: increases of each bucket, summed up over readings.
-- grain: cluster, endpoint, engine, model, metric, is_cold, bucket_ms, le_s
-- access: team
-- skip_if_empty: raw.serving_histograms
-- metric: ttft_s, inter_token_s, e2e_s, queue_s, prefill_s, decode_s
-- is_cold: of the readings of marts.serving_cold_starts
-- bucket_ms: start of the scope's bucket, epoch ms; 0 where it has none
-- le_s: inclusive upper bound, seconds
-- observations: up to the bound; sum_s: of all of them, in the row of infinity alone
-- readings: that have this bound: under that of infinity, where some have other bounds
with of_bounds as (
    select
        cluster, endpoint, engine, model, product, role, metric, is_cold,
        coalesce((end_ms - 1) // chosen_bucket_ms() * chosen_bucket_ms(), 0) as bucket_ms,
        unnest(bounds) as le_s,
        unnest(counts) as observations,
        sum_s
    from marts.serving_histogram_intervals
)

select
    cluster,
    endpoint,
    engine,
    model,
    any_value(product) as product,
    max(role) as role,
    metric,
    is_cold,
    bucket_ms,
    le_s,
    sum(observations)::bigint as observations,
    case when isinf(le_s) then sum(sum_s) end as sum_s,
    count(*) as readings
from of_bounds
group by cluster, endpoint, engine, model, metric, is_cold, bucket_ms, le_s
