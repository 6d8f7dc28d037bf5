-- Requests of serving engines with times in epoch ms.
-- arrival_at: to filter by: the zones of the table are known for it, not for what is computed from it
-- grain: cluster, endpoint, request_id
-- first_token_ms, end_ms: null: the log does not say, or it did not happen yet
select
    source,
    coalesce(cluster, 'default') as cluster,
    endpoint,
    request_id,
    arrival_at,
    to_ms(arrival_at) as arrival_ms,
    to_ms(first_token_at) as first_token_ms,
    to_ms(end_at) as end_ms,
    input_tokens,
    output_tokens,
    cached_tokens,
    model,
    status,
    error,
    tenant
from raw.serving_requests
