-- GPUs and numbered slots as the inventory sources give them, with their cluster.
-- grain: source, gpu_uuid, valid_from_ms
-- node: as the scheduler writes it, with or without its domain: exporters on one node differ in that
-- gpu_uuid: of a slot '<cluster>/<node>#<index>': clusters may have nodes of one name
-- is_slot: named after its node and index, since no source gives its UUID
-- valid_from_ms: null: as far back as there is evidence
with scheduled as (
    select node from staging.stg_node_clusters where is_scheduled
),

names as (
    select node, split_part(node, '.', 1) as host, scheduled.node is not null as is_scheduled
    from (select distinct node from raw.gpus)
    full join scheduled using (node)
),

same as (
    select names.node, others.node as other, others.is_scheduled
    from names
    inner join names as others using (host)
    where
        not names.is_scheduled
        and (
            starts_with(names.node, others.node || '.')
            or (others.is_scheduled and starts_with(others.node, names.node || '.'))
        )
    qualify others.is_scheduled = bool_or(others.is_scheduled) over (partition by names.node)
),

said as (
    select node, min(other) as known_as
    from same
    group by node
    having count(*) = 1
),

gpus as (
    select gpus.* replace (coalesce(said.known_as, gpus.node) as node), gpus.node as told_node
    from raw.gpus as gpus
    left join said using (node)
)

select
    gpus.source,
    coalesce(gpus.cluster, node_clusters.cluster, 'default') as cluster,
    gpus.node,
    case
        when gpus.gpu_uuid = gpus.told_node || '#' || gpus.slurm_index
            then coalesce(gpus.cluster, node_clusters.cluster, 'default') || '/' || gpus.gpu_uuid
        else gpus.gpu_uuid
    end as gpu_uuid,
    coalesce(gpus.gpu_uuid = gpus.told_node || '#' || gpus.slurm_index, false) as is_slot,
    gpus.gpu_index,
    gpus.slurm_index,
    gpus.pci_bus_id,
    gpus.gpu_model,
    gpus.memory_bytes,
    gpus.power_limit_w,
    gpus.sm_clock_max_hz,
    gpus.slowdown_temperature_c,
    to_ms(gpus.valid_from_at) as valid_from_ms,
    to_ms(gpus.valid_to_at) as valid_to_ms
from gpus
left join staging.stg_node_clusters as node_clusters on gpus.node = node_clusters.node
