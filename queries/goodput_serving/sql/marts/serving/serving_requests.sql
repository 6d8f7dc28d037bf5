-- Requests of the scope's request logs that ended in the window, or that did not end and arrived in it.
-- grain: cluster, endpoint, request_id
-- access: team
-- skip_if_empty: raw.serving_requests
-- endpoint: '': the log does not say
-- tenant: user or key, as the site writes it
-- ttft_s: arrival to first token; e2e_s: arrival to end
-- per_output_token_s: mean time between the tokens of the request: (end - first token) / (output tokens - 1)
-- is_failed: it ended by an error or was aborted; null: the log does not say
-- is_within: it kept the limits of its objective, which a failed one does not; null: there is none, or the log says too little
-- is_cold: one of the first after its engine started; see marts.serving_cold_starts
with requests as (
    select
        *,
        coalesce(end_ms, first_token_ms, arrival_ms) as last_ms,
        (first_token_ms - arrival_ms) / 1000 as ttft_s,
        case when output_tokens > 1 then (end_ms - first_token_ms) / 1000 / (output_tokens - 1) end as per_output_token_s,
        (end_ms - arrival_ms) / 1000 as e2e_s,
        status <> 'ok' as is_failed
    from staging.stg_serving_requests
    where
        -- a request takes less than a day
        arrival_at >= from_ms(scope_from_ms() - one_day_ms())
        and arrival_at <= scope_to_at()
        and coalesce(end_ms, first_token_ms, arrival_ms) > scope_from_ms()
        and coalesce(end_ms, first_token_ms, arrival_ms) <= scope_to_ms()
),

objectives as (
    select models.model, arg_min(objectives, objectives.place) as objective
    from (select distinct model from requests) as models
    inner join state.serving_objectives as objectives on models.model glob objectives.model
    group by models.model
)

select
    requests.* exclude (source, arrival_at, error, arrival_ms, first_token_ms, end_ms),
    endpoints.node,
    endpoints.team,
    from_ms(requests.arrival_ms) as arrival_at,
    from_ms(requests.end_ms) as end_at,
    case
        when objectives.objective is null then null
        when requests.is_failed then false
        when
            requests.ttft_s > objectives.objective.ttft_s
            or requests.per_output_token_s > objectives.objective.inter_token_s
            or requests.e2e_s > objectives.objective.e2e_s
            then false
        when
            (objectives.objective.ttft_s is null or requests.ttft_s is not null)
            and (
                objectives.objective.inter_token_s is null
                or requests.per_output_token_s is not null
                or requests.output_tokens <= 1
            )
            and (objectives.objective.e2e_s is null or requests.e2e_s is not null)
            then true
    end as is_within,
    exists (
        select 1
        from marts.serving_cold_starts as starts
        where
            starts.cluster = requests.cluster
            and starts.endpoint = requests.endpoint
            and requests.last_ms > starts.start_ms
            and requests.last_ms <= starts.end_ms
    ) as is_cold
from requests
inner join marts.serving_endpoints as endpoints using (cluster, endpoint)
left join objectives using (model)
