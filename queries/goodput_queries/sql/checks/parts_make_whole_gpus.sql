-- GPUs whose parts do not make 1 at some moment: instances laid over each other, or a part missing.
-- grain: gpu_uuid, start_ms
with moments as (
    select distinct gpu_uuid, start_ms from intermediate.int_gpu_units
)

select
    moments.gpu_uuid,
    moments.start_ms,
    sum((units.share_hi - units.share_lo) / units.share_of) as share
from moments
inner join intermediate.int_gpu_units as units
    on moments.gpu_uuid = units.gpu_uuid
    and units.start_ms <= moments.start_ms
    and coalesce(units.end_ms, forever_ms()) > moments.start_ms
group by moments.gpu_uuid, moments.start_ms
having abs(share - 1) > 1e-9
