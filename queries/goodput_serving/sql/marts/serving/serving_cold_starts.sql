-- The first requests of serving engines after they started (threshold serving_cold_requests), which compile, fill caches and
-- load what is loaded late: their latencies are separate. An engine counts from 0 when it starts, so that a count under the
-- limit says so by itself.
-- grain: cluster, endpoint, engine, model, start_ms
-- access: team
-- skip_if_empty: raw.serving_histograms
-- start_ms: reading before the first of them; end_ms: reading at which they were done, or the last one
-- requests: that ended, or had their first token, meanwhile
with readings as (
    select
        cluster, endpoint, engine, model, source, ts_ms,
        -- the later of the two: the request has ended
        min(observations) as observations
    from staging.stg_serving_histograms
    where
        isinf(le_s)
        and metric in ('ttft_s', 'e2e_s')
        and ts >= from_ms(scope_from_ms() - one_hour_ms())
        and ts <= scope_to_at()
    group by cluster, endpoint, engine, model, source, ts_ms
),

changes as (
    select
        *,
        lag(ts_ms) over series as before_ms,
        case
            when observations < lag(observations) over series then 0 else lag(observations) over series
        end as before
    from readings
    semi join marts.serving_endpoints using (cluster, endpoint)
    window series as (partition by cluster, endpoint, engine, model, source order by ts_ms)
),

cold as (
    select
        *,
        count_if(before = 0 and observations > 0) over (
            partition by cluster, endpoint, engine, model, source order by ts_ms
        ) as start
    from changes
    where before_ms is not null and before < threshold('serving_cold_requests') and observations > before
)

select
    cluster,
    endpoint,
    engine,
    model,
    min(before_ms) as start_ms,
    max(ts_ms) as end_ms,
    sum(observations - before)::bigint as requests
from cold
where ts_ms > scope_from_ms()
group by cluster, endpoint, engine, model, source, start
