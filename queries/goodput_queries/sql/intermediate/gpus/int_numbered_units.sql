-- Places of GPUs and GPU instances over time with numbers, by which many rows are joined faster than by names.
-- grain: place
-- place: number of the row, of its GPU or instance: unit; the same in every query as long as nothing is built
-- gpu_index: highest of the GPU's
-- end_ms: open ends are the latest time there is
select
    (row_number() over (order by gpu_uuid, gpu_instance, start_ms))::integer as place,
    (dense_rank() over (order by gpu_uuid, gpu_instance))::integer as unit,
    max(gpu_index) over (partition by gpu_uuid, gpu_instance) as gpu_index,
    * exclude (gpu_index, slurm_index, share_lo, share_hi, share_of, end_ms, method),
    coalesce(end_ms, forever_ms()) as end_ms
from intermediate.int_gpu_units
