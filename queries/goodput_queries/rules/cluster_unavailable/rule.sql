-- skip_if_empty: raw.node_states
with sizes as (
    select cluster, node, count(distinct gpu_uuid) as gpus from intermediate.int_gpu_units group by cluster, node
),

totals as (
    select cluster, sum(gpus) as gpus from sizes group by cluster
),

out_of_use as (
    select cluster, node, min(start_at) as start_at
    from marts.node_outages
    where not is_over and of_owner(null, null, null, null)
    group by cluster, node
),

found as (
    select
        out_of_use.cluster,
        min(out_of_use.start_at) as start_at,
        sum(sizes.gpus)::bigint as gpus,
        list(out_of_use.node order by out_of_use.start_at, out_of_use.node) as nodes
    from out_of_use
    inner join sizes using (cluster, node)
    group by out_of_use.cluster
)

select
    found.cluster,
    found.start_at,
    null as end_at,
    'Confirmed' as confidence,
    counted(found.gpus, 'GPU') || ' of ' || counted(len(found.nodes), 'node') || ' are down or drained, '
        || percent_text(found.gpus / totals.gpus) || ' of the cluster: ' || array_to_string(found.nodes[:5], ', ')
        || case when len(found.nodes) > 5 then ' ...' else '' end as evidence
from found
inner join totals using (cluster)
where
    found.gpus > threshold('unavailable_share') * totals.gpus
    and len(found.nodes) >= threshold('unavailable_nodes')
