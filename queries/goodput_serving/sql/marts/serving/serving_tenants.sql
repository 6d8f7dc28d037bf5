-- Tenants (users or keys, as request logs write them) of each model in the scope's window: what they asked for, how long it
-- took, and the endpoint where it took longest.
-- grain: cluster, model, tenant
-- access: team
-- evaluated: first
-- requests, failed_requests: number; input_tokens, output_tokens: of them
-- p50_ttft_s, p99_ttft_s, p50_e2e_s, p99_e2e_s: exact, nearest rank
-- within_ratio: share within the objective; null: there is none
-- slowest_endpoint: with the highest median time to the first token; null: the log names no endpoint; slowest_p50_ttft_s
with endpoints as (
    select
        cluster,
        model,
        tenant,
        nullif(endpoint, '') as endpoint,
        quantile_disc(ttft_s, 0.5) as p50_ttft_s
    from marts.serving_requests
    group by cluster, model, tenant, endpoint
),

slowest as (
    select
        cluster,
        model,
        tenant,
        arg_max(endpoint, (p50_ttft_s, endpoint)) filter (where endpoint is not null) as slowest_endpoint,
        max(p50_ttft_s) filter (where endpoint is not null) as slowest_p50_ttft_s
    from endpoints
    group by cluster, model, tenant
)

select
    requests.cluster,
    requests.model,
    requests.tenant,
    count(*) as requests,
    count_if(requests.is_failed)::bigint as failed_requests,
    sum(requests.input_tokens)::bigint as input_tokens,
    sum(requests.output_tokens)::bigint as output_tokens,
    quantile_disc(requests.ttft_s, 0.5) as p50_ttft_s,
    quantile_disc(requests.ttft_s, 0.99) as p99_ttft_s,
    quantile_disc(requests.e2e_s, 0.5) as p50_e2e_s,
    quantile_disc(requests.e2e_s, 0.99) as p99_e2e_s,
    avg(requests.is_within::integer) as within_ratio,
    any_value(slowest.slowest_endpoint) as slowest_endpoint,
    any_value(slowest.slowest_p50_ttft_s) as slowest_p50_ttft_s
from marts.serving_requests as requests
inner join slowest
    on requests.cluster = slowest.cluster
    and requests.model = slowest.model
    and requests.tenant is not distinct from slowest.tenant
group by requests.cluster, requests.model, requests.tenant
