-- Shares of the tokens that each engine generated in ten minutes of this pass: in requests within the objective, and of
-- models without one. A request log is exact; histograms of single latencies leave a range.
-- grain: engine_id, cell_ms
-- is_logged: by the request log of the endpoint: it counts where temp.serving_activity is logged, too
-- lo_ratio, hi_ratio: within the objective, at least and at most; null: no request shows it
-- none_ratio: of models without an objective
-- method: requests, histograms; null: unknown
with logged as (
    select
        cluster, endpoint, model, has_objective, is_within, cell_ms,
        tokens
        * (least(end_ms, cell_ms + ten_minutes_ms()) - greatest(start_ms, cell_ms))
        / (end_ms - start_ms)::double as tokens
    from (
        select *, unnest(range(start_ms // ten_minutes_ms(), (end_ms - 1) // ten_minutes_ms() + 1)) * ten_minutes_ms() as cell_ms
        from temp.served_requests
    )
    where cell_ms >= build_from_ms() and cell_ms < build_to_ms()
),

of_endpoints as (
    select
        cluster, endpoint, cell_ms,
        sum(tokens) as tokens,
        coalesce(sum(tokens) filter (has_objective and is_within), 0) as lo_tokens,
        coalesce(sum(tokens) filter (has_objective and coalesce(is_within, true)), 0) as hi_tokens,
        coalesce(sum(tokens) filter (not has_objective), 0) as none_tokens
    from logged
    where endpoint <> ''
    group by all
),

-- of gateways and logs without an endpoint, for the engines of the model
of_models as (
    select
        cluster, model, cell_ms,
        sum(tokens) filter (is_within) / sum(tokens) as lo_ratio,
        sum(tokens) filter (coalesce(is_within, true)) / sum(tokens) as hi_ratio
    from logged
    anti join temp.serving_engines using (cluster, endpoint)
    where has_objective
    group by all
),

latencies as (
    select * from temp.latency_counts
),

model_latencies as (
    select
        cluster, model, metric, cell_ms,
        share_within(sum(within_lo), sum(observations)) as lo_ratio,
        share_within(sum(within_hi), sum(observations)) as hi_ratio
    from latencies
    group by all
),

streams as (
    select engines.engine_id, engines.cluster, engines.endpoint, engines.engine, models.model, models.cell_ms, models.tokens
    from temp.serving_models as models
    inner join temp.serving_engines as engines using (engine_id)
),

asked as (
    select model, metric
    from (from temp.serving_limits unpivot (limit_s for metric in (ttft_s, inter_token_s, e2e_s)))
),

-- an engine that reports one latency alone (prefill, decode) takes the others from the engines and gateways of its model
measured as (
    select
        streams.engine_id,
        streams.model,
        streams.cell_ms,
        coalesce(
            share_within(latencies.within_lo, latencies.observations), model_latencies.lo_ratio, 0
        ) as lo_ratio,
        coalesce(
            share_within(latencies.within_hi, latencies.observations), model_latencies.hi_ratio, 1
        ) as hi_ratio,
        coalesce(latencies.observations, model_latencies.lo_ratio) is not null as is_measured
    from streams
    inner join asked using (model)
    left join latencies using (cluster, endpoint, engine, model, metric, cell_ms)
    left join model_latencies using (cluster, model, metric, cell_ms)
),

-- shares of single latencies bound the share that keeps them all
joint as (
    select
        engine_id, model, cell_ms,
        greatest(0, sum(lo_ratio) - (count(*) - 1)) as lo_ratio,
        min(hi_ratio) as hi_ratio,
        bool_or(is_measured) as is_measured
    from measured
    group by all
),

weighted as (
    select
        streams.engine_id,
        streams.cell_ms,
        limits.model is not null as has_objective,
        coalesce(of_models.lo_ratio, case when of_models.hi_ratio is not null then 0 end, joint.lo_ratio, 0) as lo_ratio,
        coalesce(of_models.hi_ratio, joint.hi_ratio, 1) as hi_ratio,
        case
            when of_models.cell_ms is not null then 'requests'
            when joint.is_measured then 'histograms'
        end as method,
        case
            when sum(streams.tokens) over same > 0 then coalesce(streams.tokens, 0) / sum(streams.tokens) over same
            -- without tokens a series that names no model has the least evidence
            when bool_or(limits.model is not null) over same
                then (limits.model is not null)::integer / count_if(limits.model is not null) over same
            else 1 / count(*) over same
        end as weight
    from streams
    left join temp.serving_limits as limits using (model)
    left join joint using (engine_id, model, cell_ms)
    left join of_models using (cluster, model, cell_ms)
    window same as (partition by streams.engine_id, streams.cell_ms)
),

of_engines as (
    select
        engine_id, cell_ms,
        coalesce(sum(weight * lo_ratio) filter (has_objective), 0) as lo_ratio,
        coalesce(sum(weight * hi_ratio) filter (has_objective), 0) as hi_ratio,
        coalesce(sum(weight) filter (not has_objective), 0) as none_ratio,
        max(method) as method
    from weighted
    group by all
)

select
    engines.engine_id, of_endpoints.cell_ms, true as is_logged,
    round(lo_tokens / tokens, 9) as lo_ratio,
    round(hi_tokens / tokens, 9) as hi_ratio,
    round(none_tokens / tokens, 9) as none_ratio,
    'requests' as method
from of_endpoints
inner join temp.serving_engines as engines using (cluster, endpoint)
union all
select
    engine_id, cell_ms, false,
    round(lo_ratio, 9), round(hi_ratio, 9), round(none_ratio, 9),
    method
from of_engines
