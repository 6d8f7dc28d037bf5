-- Each GPU by its UUID with its index on the node and its model, for texts about it.
-- grain: gpu_uuid
-- gpu_model: null: not known
select
    gpu_uuid,
    max(gpu_index) as gpu_index,
    max(gpu_model) as gpu_model
from intermediate.int_gpu_units
group by gpu_uuid
