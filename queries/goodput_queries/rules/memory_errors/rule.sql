-- skip_if_empty: intermediate.int_error_reads
select
    rises.cluster,
    rises.node,
    rises.gpu_uuid,
    from_ms(min(rises.hour_ms)) as start_at,
    from_ms(least(max(rises.hour_ms) + one_hour_ms(), any_value(clusters.as_of_ms))) as end_at,
    case when count_if(rises.kind = 'ecc_uncorrected') = 0 then 'minor' end as effect,
    'Confirmed' as confidence,
    concat_ws(
        ' and ',
        counted(nullif(sum(rises.rise) filter (where rises.kind = 'ecc_uncorrected'), 0)::bigint, 'uncorrected error'),
        counted(nullif(sum(rises.rise) filter (where rises.kind = 'ecc_corrected'), 0)::bigint, 'corrected error')
    ) as evidence
from intermediate.int_error_rises as rises
inner join intermediate.int_clusters as clusters using (cluster)
inner join marts.node_verdicts as verdicts using (cluster, node)
where
    rises.kind in ('ecc_uncorrected', 'ecc_corrected')
    and in_place(rises.cluster, rises.node, rises.gpu_uuid, rises.gpu_model)
    and sees_all_teams()
    and verdicts.verdict not in ('Replace', 'Drain')
group by rises.cluster, rises.node, rises.gpu_uuid
having
    count_if(rises.kind = 'ecc_uncorrected') > 0
    or max(rises.rise) filter (where rises.kind = 'ecc_corrected') >= threshold('watch_corrected_errors')
