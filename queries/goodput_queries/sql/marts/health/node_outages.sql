-- Outages of nodes with GPUs in the scope's window: stretches in which a node was down, or drained. States of one node
-- that overlap or touch are one outage, whichever sources report them: two faults of a node at one time count once.
-- grain: cluster, node, state, start_at
-- evaluated: first
-- state: down (a failure), drained (an operator or a health check took it out)
-- start_at, end_at: of the whole outage, also outside the window; null: still so
-- out_at: since when a GPU of it was not allocated: its time in the ledger begins then, since a node that is being drained
--  runs its jobs to their end; null: not before the end
-- is_allocated: a job had a GPU of it as it began, or ended in trouble because of it
-- is_over: another state of the node was reported since, by the end of the window
-- outage_ms: the part inside the window
-- reports: number of states it is made of; reason: their reasons; sources: who reports it
with nodes as (
    select distinct cluster, node
    from intermediate.int_gpu_units
    where in_place(cluster, node, gpu_uuid, gpu_model)
),

marked as (
    select
        *,
        coalesce(end_ms, forever_ms()) as until_ms,
        coalesce(
            start_ms > max(until_ms) over (
                partition by cluster, node, state order by start_ms, until_ms
                rows between unbounded preceding and 1 preceding
            ),
            true
        ) as is_new
    from intermediate.int_node_states
    semi join nodes using (cluster, node)
    where source is not null and state in ('down', 'drained')
),

numbered as (
    select
        *,
        count_if(is_new) over (
            partition by cluster, node, state order by start_ms, until_ms rows unbounded preceding
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
),

-- when the job run ended that had the GPU as the outage began
left_by_jobs as (
    select
        outages.cluster,
        outages.node,
        outages.state,
        outages.start_ms,
        units.gpu_uuid,
        coalesce(
            max(coalesce(holds.end_ms, forever_ms())) filter (where holds.gpu_uuid is not null), outages.start_ms
        ) as left_ms,
        count(holds.gpu_uuid) > 0 as is_held
    from outages
    inner join (
        select distinct cluster, node, gpu_uuid from intermediate.int_gpu_units
    ) as units using (cluster, node)
    left join intermediate.int_holds as holds
        on units.gpu_uuid = holds.gpu_uuid
        and holds.start_ms <= outages.start_ms
        -- of a job without an end the allocation ends as its node goes down
        and coalesce(holds.end_ms, forever_ms()) >= outages.start_ms
    group by outages.cluster, outages.node, outages.state, outages.start_ms, units.gpu_uuid
),

out_of_use as (
    select cluster, node, state, start_ms, min(left_ms) as out_ms, bool_or(is_held) as is_held
    from left_by_jobs
    group by cluster, node, state, start_ms
),

ended_jobs as (
    select distinct outages.cluster, outages.node, outages.start_ms
    from outages
    inner join intermediate.int_attempt_down_nodes as downs
        on outages.cluster = downs.cluster
        and outages.node = downs.node
        and outages.state = 'down'
        and downs.at_ms between outages.start_ms and coalesce(outages.end_ms, forever_ms())
),

left_states as (
    select distinct outages.cluster, outages.node, outages.state, outages.start_ms
    from outages
    inner join intermediate.int_node_states as others
        on outages.cluster = others.cluster
        and outages.node = others.node
        and outages.state <> others.state
        and others.source is not null
        and coalesce(others.end_ms, forever_ms()) > outages.end_ms
        and others.start_ms < scope_to_ms()
    where outages.end_ms < scope_to_ms()
)

select
    outages.* exclude (start_ms, end_ms),
    from_ms(outages.start_ms) as start_at,
    from_ms(outages.end_ms) as end_at,
    case
        when out_of_use.out_ms < coalesce(outages.end_ms, forever_ms()) or out_of_use.out_ms = outages.start_ms
            then from_ms(out_of_use.out_ms)
    end as out_at,
    coalesce(out_of_use.is_held, false) or ended_jobs.node is not null as is_allocated,
    left_states.node is not null as is_over,
    greatest(
        0,
        scope_end(coalesce(outages.end_ms, greatest(clusters.as_of_ms, outages.start_ms)))
        - scope_start(outages.start_ms)
    ) as outage_ms
from outages
inner join intermediate.int_clusters as clusters using (cluster)
left join out_of_use using (cluster, node, state, start_ms)
left join ended_jobs
    on outages.cluster = ended_jobs.cluster
    and outages.node = ended_jobs.node
    and outages.state = 'down'
    and outages.start_ms = ended_jobs.start_ms
left join left_states using (cluster, node, state, start_ms)
where
    outages.start_ms < scope_to_ms()
    -- one of no length counts where it began
    and greatest(coalesce(outages.end_ms, forever_ms()), outages.start_ms + 1)
    > scope_from_ms()
