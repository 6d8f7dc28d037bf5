-- Latency spikes of the scope's serving engines: five minutes in which the p95 of the time to first token, or between tokens, was at
-- least twice (threshold serving_spike_ratio) what it usually is in five minutes of the window. Of a histogram the lower bound
-- of its bucket counts against the upper bound of the usual one. The first requests after a start count apart.
-- grain: cluster, endpoint, engine, model, start_ms
-- access: team
-- skip_if_empty: raw.serving_histograms, marts.serving_requests
-- start_ms, end_ms: of five minutes one after the other
-- metric: of the two the one that rose more: ttft_s, inter_token_s; of logs ttft_s, per_output_token_s (the mean of a request)
-- method: histogram, requests (exact)
-- observations: requests in it; of inter_token_s tokens
-- p95_s: at least, in the worst five minutes; usual_p95_s: at most
with intervals as (
    select *, (end_ms - 1) // 300000 as cell
    from marts.serving_histogram_intervals
    where metric in ('ttft_s', 'inter_token_s') and not is_cold
),

-- numbers are quicker to group by than names
series as (
    select cluster, endpoint, engine, model, metric, (row_number() over ())::integer as series
    from (select distinct cluster, endpoint, engine, model, metric from intervals)
),

bucketed as (
    select
        series.series,
        intervals.cell,
        intervals.start_ms,
        intervals.end_ms,
        unnest(intervals.bounds) as le_s,
        unnest(intervals.counts) as observations
    from intervals
    inner join series using (cluster, endpoint, engine, model, metric)
),

sums as (
    select
        series, cell, le_s,
        min(start_ms) as start_ms,
        max(end_ms) as end_ms,
        sum(observations)::bigint as observations,
        count(*) as readings
    from bucketed
    group by series, cell, le_s
),

totals as (
    select
        series, cell,
        min(start_ms) as start_ms,
        max(end_ms) as end_ms,
        max(observations) as observations,
        max(readings) as readings
    from sums
    group by series, cell
    having max(observations) >= threshold('serving_spike_observations')
),

-- the bucket of the p95, as in macros/histograms.sql; of histograms with other bounds those that all of them have
histograms as (
    select
        totals.series, totals.cell, totals.start_ms, totals.end_ms, totals.observations,
        coalesce(max(sums.le_s) filter (where sums.observations < ceil(0.95 * totals.observations - 1e-9)), 0) as low_s,
        min(sums.le_s) filter (where sums.observations >= ceil(0.95 * totals.observations - 1e-9)) as high_s
    from sums
    inner join totals
        on sums.series = totals.series and sums.cell = totals.cell and sums.readings = totals.readings
    group by totals.series, totals.cell, totals.start_ms, totals.end_ms, totals.observations
),

of_log as (
    unpivot (
        select cluster, endpoint, model, last_ms, ttft_s, per_output_token_s
        from marts.serving_requests
        -- histograms are of all requests, a log may be of a part
        anti join series as known using (cluster, endpoint, model)
        where endpoint <> '' and not is_cold
    ) on ttft_s, per_output_token_s into name metric value value_s
),

cells as (
    select
        series.cluster, series.endpoint, series.engine, series.model, series.metric, 'histogram' as method,
        histograms.cell, histograms.start_ms, histograms.end_ms, histograms.observations, histograms.low_s, histograms.high_s
    from histograms
    inner join series using (series)
    union all
    select
        cluster, endpoint, '', model, metric, 'requests', (last_ms - 1) // 300000,
        min(last_ms), max(last_ms), count(*), quantile_disc(value_s, 0.95), quantile_disc(value_s, 0.95)
    from of_log
    group by cluster, endpoint, model, metric, (last_ms - 1) // 300000
),

judged as (
    select
        *,
        quantile_disc(high_s, 0.5) over series as usual_s,
        count(*) over series as cells
    from cells
    where observations >= threshold('serving_spike_observations')
    window series as (partition by cluster, endpoint, engine, model, metric, method)
),

slow as (
    select
        *,
        coalesce(
            cell - lag(cell) over (partition by cluster, endpoint, engine, model order by cell, metric, method) > 1, true
        ) as is_new
    from judged
    where
        cells >= threshold('serving_spike_cells')
        and low_s >= threshold('serving_spike_ratio') * usual_s
        and low_s - usual_s >= case metric
            when 'ttft_s' then threshold('serving_spike_ttft_s') else threshold('serving_spike_token_s')
        end
),

numbered as (
    select
        *,
        count_if(is_new) over (
            partition by cluster, endpoint, engine, model order by cell, metric, method rows unbounded preceding
        ) as spike
    from slow
)

select
    numbered.cluster,
    numbered.endpoint,
    numbered.engine,
    numbered.model,
    min(numbered.start_ms) as start_ms,
    max(numbered.end_ms) as end_ms,
    arg_max(columns(['metric', 'method', 'observations']), numbered.low_s / numbered.usual_s),
    arg_max(numbered.low_s, numbered.low_s / numbered.usual_s) as p95_s,
    arg_max(numbered.usual_s, numbered.low_s / numbered.usual_s) as usual_p95_s
from numbered
group by numbered.cluster, numbered.endpoint, numbered.engine, numbered.model, numbered.spike
