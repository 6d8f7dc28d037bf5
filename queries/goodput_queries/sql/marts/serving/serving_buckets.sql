-- Latency histograms of the scope's serving engines in the window: increases of each bucket, summed up over readings. A reading
-- in which any bucket or the sum is lower than before, or that has other bounds, is of a new process, and counts from 0.
-- grain: cluster, endpoint, engine, model, metric, is_cold, bucket_ms, le_s
-- access: team
-- evaluated: first
-- skip_if_empty: raw.serving_histograms
-- metric: ttft_s, inter_token_s, e2e_s, queue_s, prefill_s, decode_s
-- is_cold: of the readings of marts.serving_cold_starts
-- bucket_ms: start of the scope's bucket, epoch ms; 0 where it has none
-- le_s: inclusive upper bound, seconds
-- observations: up to the bound; sum_s: of all of them, in the row of infinity alone
-- readings: that have this bound: under that of infinity, where some have other bounds
with readings as (
    select
        cluster, endpoint, engine, model, source, metric, ts_ms,
        any_value(product) as product,
        max(role) as role,
        list(le_s order by le_s) as bounds,
        list(observations order by le_s) as counts,
        max(sum_s) as sum_s
    from staging.stg_serving_histograms
    where
        ts >= from_ms(coalesce(getvariable('scope_from_ms')::bigint, 0) - 3600000)
        and ts <= from_ms(coalesce(getvariable('scope_to_ms')::bigint, 9223372036854775))
    group by cluster, endpoint, engine, model, source, metric, ts_ms
),

-- of several sources the one with more readings
sources as (
    select cluster, endpoint, engine, arg_max(source, (readings, source)) as source
    from (
        select cluster, endpoint, engine, source, count(*) as readings from readings group by cluster, endpoint, engine, source
    )
    group by cluster, endpoint, engine
),

adjacent as (
    select
        readings.*,
        lag(readings.ts_ms) over series as before_ms,
        lag(readings.bounds) over series as before_bounds,
        lag(readings.counts) over series as before_counts,
        lag(readings.sum_s) over series as before_sum_s
    from readings
    inner join sources using (cluster, endpoint, engine, source)
    semi join marts.serving_endpoints as endpoints
        on readings.cluster = endpoints.cluster and readings.endpoint = endpoints.endpoint
    window series as (
        partition by readings.cluster, readings.endpoint, readings.engine, readings.model, readings.metric
        order by readings.ts_ms
    )
),

judged as (
    select
        *,
        bounds <> before_bounds
        or len(list_filter(counts, lambda n, i: n < before_counts[i])) > 0
        or coalesce(sum_s < before_sum_s, false) as is_reset
    from adjacent
    where before_ms is not null and ts_ms > coalesce(getvariable('scope_from_ms')::bigint, 0)
),

increases as (
    select
        judged.* exclude (counts, sum_s),
        case when is_reset then counts else list_transform(counts, lambda n, i: n - before_counts[i]) end as counts,
        case when is_reset then sum_s else sum_s - before_sum_s end as sum_s,
        starts.start_ms is not null as is_cold,
        coalesce((ts_ms - 1) // getvariable('scope_bucket_ms')::bigint * getvariable('scope_bucket_ms')::bigint, 0) as bucket_ms
    from judged
    left join marts.serving_cold_starts as starts
        on judged.cluster = starts.cluster
        and judged.endpoint = starts.endpoint
        and judged.engine = starts.engine
        and judged.model = starts.model
        and judged.ts_ms > starts.start_ms
        and judged.ts_ms <= starts.end_ms
),

-- a reading without a new observation says nothing but that its bounds are known
of_bounds as (
    select
        cluster, endpoint, engine, model, product, role, metric, is_cold, bucket_ms,
        unnest(bounds) as le_s,
        unnest(counts) as observations,
        sum_s
    from increases
    where counts[-1] > 0
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
