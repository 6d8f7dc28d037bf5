-- MIG instances with the share of their GPU as a fraction of 7 compute slices, laid end to end.
-- grain: gpu_uuid, gpu_instance, valid_from_ms
-- share_lo: slices before this instance, of 7
-- share_hi: slices up to and with it, of 7
with instances as (select * from raw.gpu_instances)

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
