-- skip_if_empty: marts.node_verdicts
select
    health.cluster,
    health.node,
    coalesce(health.evidence_at, health.last_at) as start_at,
    greatest(coalesce(health.last_at, clusters.as_of_at), start_at) as end_at,
    'Likely' as confidence,
    health.verdict_reason || case
        when scope_to_ms() - scope_from_ms() <= threshold('verdict_days') * one_day_ms() then ' in the time shown'
        when health.verdict = 'Replace' then ''
        else ' in the last ' || counted(threshold('verdict_days')::integer, 'day')
    end as evidence,
    case
        when starts_with(health.what_to_do, health.verdict) then health.what_to_do
        else health.verdict || coalesce('. ' || health.what_to_do, '')
    end as what_to_do
from marts.node_verdicts as health
inner join marts.clusters as clusters using (cluster)
where
    health.verdict in ('Replace', 'Drain')
    and sees_all_teams()
    and exists (
        select 1
        from marts.ledger_scoped_by_node as scoped
        where scoped.cluster = health.cluster and scoped.node = health.node
    )
