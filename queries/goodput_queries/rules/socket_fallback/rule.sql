-- skip_if_empty: raw.comm_transports
select
    transports.cluster,
    transports.node,
    transports.run_key,
    from_ms(scope_start(epoch_ms(clusters.first_at))) as start_at,
    from_ms(scope_end(epoch_ms(clusters.as_of_at))) as end_at,
    'Confirmed' as confidence,
    counted(transports.processes, 'process') || ' of NCCL use ' || transports.transport || ' between nodes' as evidence
from marts.transports as transports
inner join marts.clusters as clusters using (cluster)
where
    transports.is_fallback
    and transports.has_infiniband
    and (
        sees_all_teams()
        or transports.run_key in (select run_key from intermediate.int_runs_of_one_team where of_teams(team))
    )
