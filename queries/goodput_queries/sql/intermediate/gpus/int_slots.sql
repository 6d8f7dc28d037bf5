-- Slots that a scheduler can allocate: GPUs of nodes, MIG instances in place of their GPU.
-- grain: none (a GPU may stand in a node twice)
-- slot: its number on the node, as the scheduler counts; null: not known
-- from_ms, to_ms: as far as an inventory file or an instance's layout says; null: open
-- materialised: full, since holds are placed on it
-- change_tracking: all
with shares as (
    select gpu_uuid, valid_from_ms, valid_to_ms
    from intermediate.int_gpu_instances
    where starts_with(profile, 'shared ') and not is_beyond
),

-- a GPU that is shared at times is whole before, between and after them
bounds as (
    select gpu_uuid, valid_from_ms as at_ms from shares
    union
    select gpu_uuid, valid_to_ms from shares
    union
    select distinct gpu_uuid, 0 from shares
),

cells as (
    select gpu_uuid, at_ms as from_ms, lead(at_ms) over (partition by gpu_uuid order by at_ms) as to_ms
    from bounds
    where at_ms is not null
),

unshared as (
    select cells.*
    from cells
    anti join shares
        on cells.gpu_uuid = shares.gpu_uuid
        and coalesce(shares.valid_from_ms, 0) <= cells.from_ms
        and coalesce(shares.valid_to_ms, forever_ms()) > cells.from_ms
)

select
    gpus.cluster,
    gpus.node,
    gpus.gpu_uuid,
    coalesce(parts.gpu_instance, '') as gpu_instance,
    coalesce(parts.slurm_index, gpus.slurm_index, gpus.gpu_index) as slot,
    lower(coalesce(parts.profile, gpus.gpu_model)) as gpu_type,
    greatest(case when gpus.is_dated then gpus.start_ms end, parts.valid_from_ms, 0) as from_ms,
    least(gpus.end_ms, parts.valid_to_ms) as to_ms
from intermediate.int_gpu_inventory as gpus
left join intermediate.int_gpu_instances as parts on gpus.gpu_uuid = parts.gpu_uuid and not parts.is_beyond
union all
select
    gpus.cluster,
    gpus.node,
    gpus.gpu_uuid,
    '',
    coalesce(gpus.slurm_index, gpus.gpu_index),
    lower(gpus.gpu_model),
    greatest(case when gpus.is_dated then gpus.start_ms end, unshared.from_ms),
    least(gpus.end_ms, unshared.to_ms)
from intermediate.int_gpu_inventory as gpus
inner join unshared using (gpu_uuid)
