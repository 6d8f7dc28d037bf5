-- Observations of latencies in each ten minutes of this pass, and how many are within the objective of the model.
-- grain: cluster, endpoint, engine, model, metric, cell_ms
-- metric: ttft_s, inter_token_s, e2e_s, of those that the objective asks
-- within_lo, within_hi: observations in buckets up to the limit, and up to the bucket that has the limit in it
with limits as (
    from temp.serving_limits unpivot (limit_s for metric in (ttft_s, inter_token_s, e2e_s))
),

counted as (
    select
        histograms.source,
        histograms.cluster,
        histograms.endpoint,
        histograms.engine,
        histograms.model,
        histograms.metric,
        histograms.ts_ms,
        coalesce(max(histograms.observations) filter (histograms.le_s <= limits.limit_s), 0) as within_lo,
        coalesce(
            min(histograms.observations) filter (histograms.le_s >= limits.limit_s), max(histograms.observations)
        ) as within_hi,
        max(histograms.observations) as observations
    from staging.stg_serving_histograms as histograms
    inner join limits using (model, metric)
    where
        histograms.ts >= from_ms(build_from_ms() - threshold('serving_gap_max_ms')::bigint)
        and histograms.ts < from_ms(build_to_ms())
    group by all
),

followed as (
    select
        *,
        lag(observations) over in_order as observations_before,
        lag(within_lo) over in_order as lo_before,
        lag(within_hi) over in_order as hi_before,
        ts_ms - lag(ts_ms) over in_order as gap_ms
    from counted
    window in_order as (partition by source, cluster, endpoint, engine, model, metric order by ts_ms)
),

-- an engine that began again counts from 0, in all buckets
increases as (
    select
        * exclude (observations, within_lo, within_hi),
        observations - case when observations >= observations_before then observations_before else 0 end
            as observations,
        within_lo - case when observations >= observations_before then lo_before else 0 end as within_lo,
        within_hi - case when observations >= observations_before then hi_before else 0 end as within_hi
    from followed
    where ts_ms >= build_from_ms() and gap_ms <= threshold('serving_gap_max_ms')
)

select
    cluster,
    endpoint,
    engine,
    model,
    metric,
    ts_ms // ten_minutes_ms() * ten_minutes_ms() as cell_ms,
    sum(within_lo)::bigint as within_lo,
    sum(within_hi)::bigint as within_hi,
    sum(observations)::bigint as observations
from increases
group by cluster, endpoint, engine, model, metric, source, ts_ms // ten_minutes_ms()
having sum(observations) > 0
-- of two sources of an engine the one that saw more
qualify row_number() over (
    partition by cluster, endpoint, engine, model, metric, ts_ms // ten_minutes_ms() order by sum(observations) desc, source
) = 1
