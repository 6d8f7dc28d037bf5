-- MIG instances with the share of their GPU as a fraction of 7 compute slices, laid end to end.
-- grain: gpu_uuid, gpu_instance, valid_from_ms
-- share_lo: slices before this instance, of 7
-- share_hi: slices up to and with it, of 7
-- An inventory file has the last word on a GPU's instances.
with instances as (
    select
        parts.* exclude (gpu_uuid, cluster),
        case
            when regexp_matches(parts.gpu_uuid, '#[0-9]+$')
                then coalesce(parts.cluster, node_clusters.cluster, 'default') || '/' || parts.gpu_uuid
            else parts.gpu_uuid
        end as gpu_uuid
    from raw.gpu_instances as parts
    left join staging.stg_node_clusters as node_clusters
        on regexp_replace(parts.gpu_uuid, '#[0-9]+$', '') = node_clusters.node
    qualify parts.source = 'inventory'
        or not bool_or(parts.source = 'inventory') over (partition by parts.cluster, parts.gpu_uuid)
)

select
    source,
    gpu_uuid,
    gpu_instance,
    profile,
    compute_slices,
    slurm_index,
    coalesce(
        sum(compute_slices) over (
            partition by gpu_uuid, valid_from_at order by slurm_index, gpu_instance
            rows between unbounded preceding and 1 preceding
        ),
        0
    )::bigint as share_lo,
    sum(compute_slices) over (
        partition by gpu_uuid, valid_from_at order by slurm_index, gpu_instance
        rows between unbounded preceding and current row
    )::bigint as share_hi,
    to_ms(valid_from_at) as valid_from_ms,
    to_ms(valid_to_at) as valid_to_ms
from instances
