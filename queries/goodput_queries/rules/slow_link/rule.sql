-- skip_if_empty: marts.slow_nodes
-- gpu_ms: of the communication of its run what the expected bandwidth would save at most; nodes of one run share it
with exposed as (select run_key, gpu_ms, cost from marts.run_categories where category = 'exposed_comm')

select
    slow.cluster,
    slow.node,
    slow.run_key,
    from_ms(scope_start(epoch_ms(clusters.first_at))) as start_at,
    from_ms(scope_end(epoch_ms(clusters.as_of_at))) as end_at,
    case when slow.verdict = 'Not confirmed' then 'unconfirmed' end as effect,
    slow.verdict as confidence,
    (exposed.gpu_ms * (1 - slow.least_ratio) / count(*) over of_run)::bigint as gpu_ms,
    exposed.cost * (1 - slow.least_ratio) / count(*) over of_run as cost,
    slow.slow_communicators || ' of ' || counted(slow.communicators, 'communicator')
        || case when slow.slow_communicators = 1 then ' reaches' else ' reach' end || ' less than '
        || cast(round(100 * threshold('slow_link_ratio')) as integer) || ' % of what is expected, the slowest '
        || cast(round(100 * slow.least_ratio) as integer) || ' %' || coalesce('; a port has trouble: ' || slow.link_trouble, '')
        || case
            when slow.limited_communicators > 0
                then '; no operation of it is faster, and others between the same nodes are: its link was slow then, or its'
                    || ' settings of NCCL make it so'
            else ''
        end as evidence,
    case
        when slow.limited_communicators > 0 and slow.link_trouble is null
            then 'Compare the settings and channels of NCCL with those of a run that is fast; else check links and adapters'
    end as what_to_do
from marts.slow_nodes as slow
inner join marts.clusters as clusters using (cluster)
left join exposed using (run_key)
where sees_all_teams()
window of_run as (partition by slow.run_key)
