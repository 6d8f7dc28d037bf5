-- Serving objectives of goodput.toml against the requests of the scope's window, by model: the share within the objective and
-- the error budget. Of a log it is exact; histograms of single latencies only bound it: of shares a and b at least a + b - 1 and
-- at most the smaller one were both within, a limit inside a bucket bounds each, and what
-- engines count as failed is not within it.
-- grain: cluster, model, method
-- access: team
-- evaluated: first
-- pattern: of the objective; ttft_limit_s, inter_token_limit_s, e2e_limit_s: null: not asked
-- target_ratio: share of requests that is wanted; null: none
-- method: requests (exact), histogram
-- requests: judged; of a log those that say enough
-- attained_low_ratio, attained_high_ratio: share within the objective; equal where it is exact. Of the limit between
--  tokens a histogram has the share of tokens, which stands for that of requests
-- budget_requests: (1 - target) x requests; budget_spent_low_ratio, budget_spent_high_ratio: missed / budget, over 1: exhausted
-- is_met: null: the bounds leave it open
-- within_requests_per_gpu_h: requests within the objective per GPU-hour, at the least
with objectives as (
    select models.model, arg_min(objectives, objectives.place) as objective
    from (select distinct model from marts.serving_buckets union select distinct model from marts.serving_requests) as models
    inner join state.serving_objectives as objectives on models.model glob objectives.model
    group by models.model
),

sums as (
    select cluster, model, metric, le_s, sum(observations)::bigint as observations
    from (
        select *
        from marts.serving_buckets
        where metric in ('ttft_s', 'inter_token_s', 'e2e_s') and model in (select model from objectives)
        qualify (role = 'frontend') = bool_or(role = 'frontend') over (partition by cluster, model, metric)
    )
    group by cluster, model, metric, le_s
    qualify sum(readings) = max(sum(readings)) over (partition by cluster, model, metric)
),

histograms as (
    select
        sums.cluster,
        sums.model,
        sums.metric,
        any_value(objectives.objective) as objective,
        list(sums.le_s order by sums.le_s) as bounds,
        list(sums.observations order by sums.le_s) as counts,
        case sums.metric
            when 'ttft_s' then any_value(objectives.objective.ttft_s)
            when 'inter_token_s' then any_value(objectives.objective.inter_token_s)
            else any_value(objectives.objective.e2e_s)
        end as limit_s
    from sums
    inner join objectives using (model)
    group by sums.cluster, sums.model, sums.metric
    having max(sums.observations) > 0
),

of_metrics as (
    select
        *,
        count_up_to_low(bounds, counts, limit_s) / counts[-1] as low_ratio,
        count_up_to_high(bounds, counts, limit_s) / counts[-1] as high_ratio
    from histograms
    where limit_s is not null
),

bounded as (
    select
        cluster,
        model,
        any_value(objective) as objective,
        'histogram' as method,
        min(counts[-1]) filter (where metric <> 'inter_token_s') as requests,
        greatest(
            0,
            -- a limit that no histogram speaks of may be missed by all
            sum(low_ratio) + 1 - (
                (any_value(objective).ttft_s is not null)::integer
                + (any_value(objective).inter_token_s is not null)::integer
                + (any_value(objective).e2e_s is not null)::integer
            )
        ) as attained_low_ratio,
        min(high_ratio) as attained_high_ratio
    from of_metrics
    group by cluster, model
),

exact as (
    select
        requests.cluster,
        requests.model,
        any_value(objectives.objective) as objective,
        'requests' as method,
        count(requests.is_within) as requests,
        avg(requests.is_within::integer) as attained_low_ratio,
        avg(requests.is_within::integer) as attained_high_ratio
    from marts.serving_requests as requests
    inner join objectives using (model)
    group by requests.cluster, requests.model
),

-- a request that failed is not within the objective, whatever its latencies
less_failed as (
    select
        bounded.* replace (
            greatest(0, bounded.attained_low_ratio - coalesce(models.requests_failed / models.requests_finished, 0))
                as attained_low_ratio,
            least(bounded.attained_high_ratio, 1 - coalesce(models.requests_failed / models.requests_finished, 0))
                as attained_high_ratio
        )
    from bounded
    left join marts.serving_models as models
        on bounded.cluster = models.cluster
        and bounded.model = models.model
        and models.role is null
        and models.requests_finished > 0
),

found as (
    select * from less_failed
    union all by name
    select * from exact
)

select
    found.* exclude (objective),
    found.objective.model as pattern,
    found.objective.ttft_s as ttft_limit_s,
    found.objective.inter_token_s as inter_token_limit_s,
    found.objective.e2e_s as e2e_limit_s,
    found.objective.target as target_ratio,
    (1 - found.objective.target) * found.requests as budget_requests,
    (1 - found.attained_high_ratio) / nullif(1 - found.objective.target, 0) as budget_spent_low_ratio,
    (1 - found.attained_low_ratio) / nullif(1 - found.objective.target, 0) as budget_spent_high_ratio,
    case
        when found.attained_low_ratio >= found.objective.target then true
        when found.attained_high_ratio < found.objective.target then false
    end as is_met,
    found.attained_low_ratio * found.requests / nullif(models.gpu_ms, 0) * one_hour_ms() as within_requests_per_gpu_h
from found
left join marts.serving_models as models
    on found.cluster = models.cluster and found.model = models.model and models.role is null
