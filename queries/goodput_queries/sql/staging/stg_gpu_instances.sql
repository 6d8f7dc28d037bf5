-- Parts of GPUs with their slices, source by source; slices_of: null: of 7, a MIG instance.
-- grain: source, gpu_uuid, gpu_instance, valid_from_ms
-- valid_from_ms, valid_to_ms: null: as long as the GPU is there
with instances as (
    select
        parts.* exclude (gpu_uuid, cluster, valid_to_at),
        -- a new layout of a GPU from the same source (a restarted collector) ends the previous one
        coalesce(
            parts.valid_to_at,
            min(parts.valid_from_at) over (
                partition by parts.source, parts.cluster, parts.gpu_uuid order by parts.valid_from_at
                range between interval 1 microsecond following and unbounded following
            )
        ) as valid_to_at,
        case
            when regexp_matches(parts.gpu_uuid, '#[0-9]+$')
                then coalesce(parts.cluster, node_clusters.cluster, 'default') || '/' || parts.gpu_uuid
            else parts.gpu_uuid
        end as gpu_uuid
    from raw.gpu_instances as parts
    left join staging.stg_node_clusters as node_clusters
        on regexp_replace(parts.gpu_uuid, '#[0-9]+$', '') = node_clusters.node
),

-- an instance that is in the next layout too has not ended
turns as (
    select
        *,
        valid_from_at is distinct from lag(valid_to_at) over (
            partition by source, gpu_uuid, gpu_instance, profile, compute_slices, slices_of, slurm_index
            order by valid_from_at nulls first
        ) as is_new
    from instances
),

stretches as (
    select
        *,
        count_if(is_new) over (
            partition by source, gpu_uuid, gpu_instance, profile, compute_slices, slices_of, slurm_index
            order by valid_from_at nulls first
        ) as stretch
    from turns
)

select
    source,
    gpu_uuid,
    gpu_instance,
    profile,
    compute_slices,
    slices_of,
    slurm_index,
    to_ms(case when count(*) = count(valid_from_at) then min(valid_from_at) end) as valid_from_ms,
    to_ms(case when count(*) = count(valid_to_at) then max(valid_to_at) end) as valid_to_ms
from stretches
group by source, gpu_uuid, gpu_instance, profile, compute_slices, slices_of, slurm_index, stretch
