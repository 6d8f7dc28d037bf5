-- Requests of request logs in and around this pass, with whether they were within the objective of their model.
-- grain: cluster, endpoint, request_id
-- end_ms: at most serving_request_max_ms after the start
-- tokens: generated; 1 where none was or the log does not say, so that a time of failed requests alone is one
-- is_within: null: the log does not say enough; has_objective: false: the model has none
select
    requests.cluster,
    requests.endpoint,
    requests.request_id,
    requests.model,
    requests.arrival_ms as start_ms,
    greatest(
        requests.arrival_ms + 1,
        least(requests.end_ms, requests.arrival_ms + threshold('serving_request_max_ms')::bigint)
    ) as end_ms,
    requests.end_ms - requests.arrival_ms as length_ms,
    greatest(coalesce(requests.output_tokens, 0), 1) as tokens,
    objectives.model is not null as has_objective,
    coalesce(requests.status, 'ok') = 'ok'
    and (
        objectives.ttft_s is null
        or coalesce(
            requests.first_token_ms - requests.arrival_ms <= 1000 * objectives.ttft_s,
            -- the last token came in time, so the first one did
            case when requests.end_ms - requests.arrival_ms <= 1000 * objectives.ttft_s then true end
        )
    )
    and (
        objectives.inter_token_s is null
        or requests.output_tokens <= 1
        or (requests.end_ms - requests.first_token_ms) / (requests.output_tokens - 1) <= 1000 * objectives.inter_token_s
    )
    and (objectives.e2e_s is null or requests.end_ms - requests.arrival_ms <= 1000 * objectives.e2e_s) as is_within
from staging.stg_serving_requests as requests
left join temp.serving_limits as objectives using (model)
where
    requests.arrival_at >= from_ms(build_from_ms() - 2 * threshold('serving_request_max_ms')::bigint)
    and requests.arrival_at < from_ms(build_to_ms() + threshold('serving_silent_max_ms')::bigint)
    and requests.end_ms >= requests.arrival_ms
