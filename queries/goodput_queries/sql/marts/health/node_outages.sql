-- Outages of nodes with GPUs in the scope's window: stretches in which a node was down, or drained. States of one node
-- that overlap or touch are one outage, whichever sources report them: two faults of a node at one time count once.
-- grain: cluster, node, state, start_at
-- state: down (a failure), drained (an operator or a health check took it out)
-- start_at, end_at: of the whole outage, also outside the window; null: still so
-- outage_ms: the part inside the window
-- reports: number of states it is made of; reason: their reasons; sources: who reports it
with nodes as (
    select distinct cluster, node
    from intermediate.int_gpu_units
    where in_place(cluster, node, gpu_uuid, gpu_model)
),

-- a listing of nodes shows a moment: it lasts to the next listing where that shows the same
listed as (
    select
        states.*,
        case
            when
                states.source = 'slurm' and states.end_ms = states.start_ms
                and lead(states.state) over of_listing = states.state
                then lead(states.start_ms) over of_listing
            else coalesce(states.end_ms, forever_ms())
        end as until_ms
    from staging.stg_node_states as states
    semi join nodes using (cluster, node)
    window of_listing as (
        partition by states.source, states.cluster, states.node, states.end_ms = states.start_ms order by states.start_ms
    )
),

marked as (
    select
        *,
        coalesce(
            start_ms > max(until_ms) over (
                partition by cluster, node, state order by start_ms, until_ms
                rows between unbounded preceding and 1 preceding
            ),
            true
        ) as is_new
    from listed
    where state in ('down', 'drained')
),

numbered as (
    select
        *,
        count_if(is_new) over (
            partition by cluster, node, state order by start_ms, until_ms
            rows between unbounded preceding and current row
        ) as outage
    from marked
),

outages as (
    select
        cluster,
        node,
        state,
        min(start_ms) as start_ms,
        nullif(max(until_ms), forever_ms()) as end_ms,
        count(*) as reports,
        string_agg(distinct reason, '; ' order by reason) as reason,
        string_agg(distinct replace(source, '-', ' '), ', ' order by replace(source, '-', ' ')) as sources
    from numbered
    group by cluster, node, state, outage
)

select
    outages.cluster,
    outages.node,
    outages.state,
    from_ms(outages.start_ms) as start_at,
    from_ms(outages.end_ms) as end_at,
    greatest(
        0,
        scope_end(coalesce(outages.end_ms, greatest(clusters.as_of_ms, outages.start_ms)))
        - scope_start(outages.start_ms)
    ) as outage_ms,
    outages.reports,
    outages.reason,
    outages.sources
from outages
inner join intermediate.int_clusters as clusters using (cluster)
where
    outages.start_ms < scope_to_ms()
    -- one of no length counts where it began
    and greatest(coalesce(outages.end_ms, forever_ms()), outages.start_ms + 1)
    > scope_from_ms()
