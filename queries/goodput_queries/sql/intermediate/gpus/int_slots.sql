-- Slots that a scheduler can allocate: GPUs of nodes, MIG instances in place of their GPU.
-- grain: none (a GPU may stand in a node twice)
-- slot: its number on the node, as the scheduler counts; null: not known
-- from_ms, to_ms: as far as an inventory file or an instance's layout says; null: open
-- materialised: full, since holds are placed on it
-- change_tracking: all
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
