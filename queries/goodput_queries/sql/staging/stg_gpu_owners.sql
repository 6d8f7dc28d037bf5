-- Owners of GPUs by labels on their series, with the GPU's node.
-- grain: source, gpu_uuid, gpu_instance, kind, owner, first_ms
-- kind: hpc_job, pod; where a GPU's series carry job ids, they alone determine its owner
with owners as (
    select
        source,
        gpu_uuid,
        gpu_instance,
        kind,
        owner,
        to_ms(first_seen_at) as first_ms,
        max(to_ms(last_seen_at)) as last_ms,
        max(user_name) as user_name,
        max(partition) as partition,
        max(load_sequence) as load_sequence
    from raw.gpu_owners
    group by source, gpu_uuid, gpu_instance, kind, owner, first_seen_at
    qualify kind = min(kind) over (partition by gpu_uuid)
),

gpus as (
    select gpu_uuid, cluster, node, coalesce(valid_from_ms, 0) as from_ms from staging.stg_gpus where not is_slot
)

select
    owners.source,
    gpus.cluster,
    gpus.node,
    owners.* exclude (source, load_sequence),
    coalesce(owners.load_sequence, 0) as load_sequence  -- null: written by an earlier version
from owners
asof inner join gpus on owners.gpu_uuid = gpus.gpu_uuid and owners.first_ms >= gpus.from_ms
