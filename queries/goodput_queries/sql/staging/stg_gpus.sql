-- GPUs and numbered slots as the inventory sources give them, with their cluster.
-- grain: source, gpu_uuid, valid_from_ms
-- node: as the scheduler writes it, with or without its domain: exporters on one node differ in that
-- gpu_uuid: of a slot '<cluster>/<node>#<index>': clusters may have nodes of one name
-- is_slot: named after its node and index, since no source gives its UUID
-- valid_from_ms: null: as far back as there is evidence
with gpus as (
    select gpus.* replace (coalesce(names.known_as, gpus.node) as node), gpus.node as reported_node
    from raw.gpus as gpus
    left join staging.stg_node_clusters as names using (node)
)

select
    gpus.* exclude (cluster, gpu_uuid, reported_node, valid_from_at, valid_to_at, load_sequence),
    coalesce(gpus.cluster, node_clusters.cluster, 'default') as cluster,
    case
        when gpus.gpu_uuid = gpus.reported_node || '#' || gpus.slurm_index
            then coalesce(gpus.cluster, node_clusters.cluster, 'default') || '/' || gpus.gpu_uuid
        else gpus.gpu_uuid
    end as gpu_uuid,
    coalesce(gpus.gpu_uuid = gpus.reported_node || '#' || gpus.slurm_index, false) as is_slot,
    to_ms(gpus.valid_from_at) as valid_from_ms,
    to_ms(gpus.valid_to_at) as valid_to_ms
from gpus
left join staging.stg_node_clusters as node_clusters on gpus.node = node_clusters.node
