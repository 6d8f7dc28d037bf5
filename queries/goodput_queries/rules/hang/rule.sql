-- skip_if_empty: marts.hangs
select
    cluster,
    culprit_node as node,
    culprit_gpu_uuid as gpu_uuid,
    run_key,
    since_at as start_at,
    last_seen_at as end_at,
    confidence,
    coalesce('rank ' || culprit_rank || ' ', '') || evidence as evidence
from marts.hangs
where is_root
