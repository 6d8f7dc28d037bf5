-- Engines of serving endpoints and their models, by all that was said of where they run, with their first and last report.
-- grain: cluster, endpoint, engine, model, node, namespace, pod, pid, gpu_labels
-- endpoint: '': a request log does not name it
-- engine: index inside the endpoint; '': it has one, or a request log named the endpoint
-- node, namespace, pod: '' where it is not said; pid: -1; gpu_labels: empty
-- role: prefill, decode, frontend, both; '': not said
-- first_ms, last_ms: the first and the last sample or request
-- first_zero_ms: the first sample at which no token was counted yet: where it is the first of all the engine had just started
-- has_samples: it was scraped, or wrote a log of its own; false: a request log alone names it
-- materialised: merged, since each build reads the samples of new loads alone
-- skip_if_empty: raw.serving_samples, raw.serving_requests
with reported as (
    select
        cluster, endpoint, engine, model, node, namespace, pod, pid, gpu_labels, role,
        min(ts) as first_at,
        max(ts) as last_at,
        min(ts) filter (metric in ('prompt_tokens', 'generation_tokens') and value = 0) as first_zero_at,
        true as has_samples
    from raw.serving_samples
    where load_sequence > merged_sequence()
    group by all
    union all
    select
        cluster, endpoint, '', model, null,
        nullif(regexp_extract(endpoint, '^([^/:]+)/([^/:]+)(:\d+)?$', 1), ''),
        nullif(regexp_extract(endpoint, '^([^/:]+)/([^/:]+)(:\d+)?$', 2), ''),
        null, null, '',
        min(arrival_at),
        max(greatest(arrival_at, end_at)),
        null,
        false
    from raw.serving_requests
    where load_sequence > merged_sequence()
    group by all
)

select
    coalesce(reported.cluster, node_clusters.cluster, aliases.cluster, 'default') as cluster,
    reported.endpoint,
    reported.engine,
    reported.model,
    coalesce(node_clusters.known_as, node_clusters.node, aliases.node, reported.node, '') as node,
    coalesce(reported.namespace, '') as namespace,
    coalesce(reported.pod, '') as pod,
    coalesce(reported.pid, -1) as pid,
    coalesce(reported.gpu_labels, []) as gpu_labels,
    max(reported.role) as role,
    min(to_ms(reported.first_at)) as first_ms,
    max(to_ms(reported.last_at)) as last_ms,
    min(to_ms(reported.first_zero_at)) as first_zero_ms,
    max(reported.has_samples) as has_samples
from reported
left join staging.stg_node_clusters as node_clusters on reported.node = node_clusters.node
left join staging.stg_node_aliases as aliases on is_alias(reported.node, reported.cluster, node_clusters.cluster, aliases)
group by all
