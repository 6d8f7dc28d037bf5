-- skip_if_empty: raw.node_states
with waited_for as (
    select distinct cluster, node
    from intermediate.int_node_intervals
    where
        state = 'drained'
        and has_demand
        and hour_ms >= scope_from_ms() - one_hour_ms()
        and in_window(start_ms, end_ms)
)

select
    outages.cluster,
    outages.node,
    outages.start_at,
    outages.end_at,
    case
        when waited_for.node is not null then 'awaited'
        when epoch_ms(coalesce(outages.end_at, clusters.as_of_at)) - epoch_ms(outages.start_at) >= threshold('drained_ticket_ms')
            then 'long'
    end as effect,
    outages.is_over,
    'Confirmed' as confidence,
    null as evidence,
    outage_text(outages.state, outages.sources, outages.reason)
    || case when waited_for.node is not null then ', while jobs wait that could use it' else '' end
    || case
        when outages.out_at >= outages.start_at + interval 1 minute
            then '; its own jobs kept all its GPUs for ' || counted(date_diff('minute', outages.start_at, outages.out_at), 'minute')
        else ''
    end as cause
from marts.node_outages as outages
inner join marts.clusters as clusters using (cluster)
left join waited_for using (cluster, node)
where outages.state = 'drained' and outages.out_at is not null and of_owner(null, null, null, null)
