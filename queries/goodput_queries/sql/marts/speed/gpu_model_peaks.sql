-- Published peaks of the GPU models in the inventory, without sparsity. A name that does not say which variant a GPU is
-- (`h100`: SXM, PCIe or NVL) has none.
-- grain: gpu_model
-- access: everyone
-- peak_model: row of reference.gpu_model_peaks; null: no peak is known
-- bf16_flops_per_s .. fp32_flops_per_s: dense, of one GPU; tf32 and fp8 of the tensor cores, fp32 without them
-- sparse_factor: peak with 2:4 sparsity over the dense one
-- memory_bytes_per_s: of the GPU's memory; gpu_link_bytes_per_s: NVLink or its like, both directions together
-- power_limit_w: highest power limit that the vendor ships
-- source: whose figures they are
with names as (
    select distinct gpu_model from intermediate.int_gpu_inventory where gpu_model is not null
)

select
    names.gpu_model,
    peaks.* exclude (pattern, precedence)
from names
left join reference.gpu_model_peaks as peaks on regexp_matches(lower(names.gpu_model), peaks.pattern)
qualify row_number() over (partition by names.gpu_model order by peaks.precedence, peaks.peak_model) = 1
