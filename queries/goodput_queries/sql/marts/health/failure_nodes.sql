-- Nodes that the evidence names for attempts of the scope's window that infrastructure ended: the only node of the
-- attempt, or one that went down or had an error of hardware or driver when the attempt ended.
-- grain: attempt_key, cluster, node
-- skip_if_empty: intermediate.int_attempt_causes
-- share: of the attempt's cost: an equal part for each node that is named
-- place: 1: the node named first where one is to stand for all: by its first error, then its name
with faults as (
    select
        attempts.attempt_key,
        attempts.job_run_key,
        attempts.start_ms,
        attempts.end_ms,
        causes.trouble_from_ms
    from intermediate.int_attempts as attempts
    inner join intermediate.int_attempt_causes as causes using (attempt_key)
    where causes.is_platform and in_window(attempts.end_ms - 1, attempts.end_ms)
),

places as (
    select distinct faults.attempt_key, holds.cluster, holds.node
    from faults
    inner join intermediate.int_holds as holds using (job_run_key)
    where holds.start_ms < faults.end_ms and coalesce(holds.end_ms, forever_ms()) > faults.start_ms
),

-- what happened on the node when the attempt ended; an attempt on one node needs no more
signs as (
    select places.attempt_key, places.cluster, places.node, null::bigint as since_ms
    from places
    qualify count(*) over (partition by places.attempt_key) = 1
    union all
    select places.attempt_key, places.cluster, places.node, states.start_ms
    from places
    inner join faults using (attempt_key)
    inner join staging.stg_node_states as states
        on places.cluster = states.cluster and places.node = states.node and states.state = 'down'
        and states.start_ms between faults.trouble_from_ms and faults.end_ms + 60000
    union all
    select places.attempt_key, places.cluster, places.node, epoch_ms(found.start_at)
    from places
    inner join faults using (attempt_key)
    inner join marts.gpu_incidents as found
        on places.cluster = found.cluster and places.node = found.node and found.class = 'hardware'
        and epoch_ms(found.end_at) >= faults.trouble_from_ms
        and epoch_ms(found.start_at) <= faults.end_ms + 60000
)

select
    attempt_key,
    cluster,
    node,
    1.0 / count(*) over (partition by attempt_key) as share,
    row_number() over (partition by attempt_key order by min(since_ms), node) as place
from signs
group by attempt_key, cluster, node
