-- Latency histograms of the scope's serving engines between one reading and the next: the increase of each bucket, where there is
-- any. A reading in which any bucket or the sum is lower than before, or that has other bounds, is of a new process, and counts
-- from 0.
-- grain: cluster, endpoint, engine, model, metric, end_ms
-- access: team
-- skip_if_empty: raw.serving_histograms
-- metric: ttft_s, inter_token_s, e2e_s, queue_s, prefill_s, decode_s
-- bounds, counts: inclusive upper bounds, seconds, ascending; observations up to each; sum_s: of all of them
-- is_cold: of the readings of marts.serving_cold_starts
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
        ts >= from_ms(scope_from_ms() - one_hour_ms())
        and ts <= scope_to_at()
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
    where before_ms is not null and ts_ms > scope_from_ms()
)

select
    judged.cluster,
    judged.endpoint,
    judged.engine,
    judged.model,
    judged.product,
    judged.role,
    judged.metric,
    judged.before_ms as start_ms,
    judged.ts_ms as end_ms,
    judged.bounds,
    case
        when judged.is_reset then judged.counts
        else list_transform(judged.counts, lambda n, i: n - judged.before_counts[i])
    end as counts,
    case when judged.is_reset then judged.sum_s else judged.sum_s - judged.before_sum_s end as sum_s,
    starts.start_ms is not null as is_cold
from judged
left join marts.serving_cold_starts as starts
    on judged.cluster = starts.cluster
    and judged.endpoint = starts.endpoint
    and judged.engine = starts.engine
    and judged.model = starts.model
    and judged.ts_ms > starts.start_ms
    and judged.ts_ms <= starts.end_ms
-- a reading without a new observation says nothing but that its bounds are known
where judged.counts[-1] > case when judged.is_reset then 0 else judged.before_counts[-1] end
