-- Requests of serving engines with times in epoch ms.
-- arrival_at: to filter by: the zones of the table are known for it, not for what is computed from it
-- grain: cluster, endpoint, request_id
-- first_token_ms, end_ms: null: the log does not say, or it did not happen yet
select
    * exclude (cluster, first_token_at, end_at, load_sequence),
    coalesce(cluster, 'default') as cluster,
    to_ms(arrival_at) as arrival_ms,
    to_ms(first_token_at) as first_token_ms,
    to_ms(end_at) as end_ms
from raw.serving_requests
