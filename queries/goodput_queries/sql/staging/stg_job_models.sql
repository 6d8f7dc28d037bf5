-- What jobs say of the model they train, with times in epoch ms: in a `metric` event, or in a log where it is quantised.
-- grain: none (an event as it was written)
-- params: parameters that a token uses
-- dtype: of the matrix multiplications, lower case; is_sparse: with the 2:4 sparsity of the tensor cores
select
    coalesce(events.cluster, node_clusters.cluster, 'default') as cluster,
    events.run_id,
    events.attempt,
    to_ms(events.ts) as at_ms,
    try_cast(events.extra ->> '$.params' as double) as params,
    lower(events.extra ->> '$.dtype')[:40] as dtype,
    try_cast(events.extra ->> '$.is_sparse' as boolean) as is_sparse
from raw.job_events as events
left join staging.stg_node_clusters as node_clusters on events.host = node_clusters.node
where
    (events.event = 'metric' or (events.event = 'step' and events.source = 'job-log'))
    and (events.extra ->> '$.params' is not null or events.extra ->> '$.dtype' is not null)
