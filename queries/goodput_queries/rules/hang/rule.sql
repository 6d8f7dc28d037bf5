-- skip_if_empty: marts.hangs
select
    hangs.cluster,
    hangs.culprit_node as node,
    hangs.culprit_gpu_uuid as gpu_uuid,
    hangs.run_key,
    hangs.since_at as start_at,
    hangs.last_seen_at as end_at,
    case
        when
            attempts.gpus >= threshold('gang_page_gpus')
            and epoch_ms(hangs.last_seen_at) - epoch_ms(hangs.since_at) >= threshold('gang_page_ms')
            then 'gang'
    end as effect,
    coalesce(attempts.end_ms < scope_end(clusters.as_of_ms), false) as is_over,
    hangs.confidence,
    coalesce('rank ' || hangs.culprit_rank || ' ', '') || hangs.evidence as evidence
from marts.hangs as hangs
left join intermediate.int_clusters as clusters using (cluster)
left join intermediate.int_attempts as attempts using (run_key, attempt)
where hangs.is_root
