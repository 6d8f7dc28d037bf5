-- GPUs of attempts for which a hardware error was recorded (Xid: ECC, NVLink, off the bus and others).
-- grain: none (errors)
-- skip_if_empty: temp.int_rank_gpus where exists (from raw.gpu_events)
-- error_ms: when
with errors as (
    select events.gpu_uuid, events.cluster, events.node, events.pci_bus_id, events.ts_ms as error_ms
    from staging.stg_gpu_errors as events
    inner join reference.xid_codes as codes on events.code = codes.xid
    where codes.fault_domain = 'hardware'
)

select ranks.attempt_key, gpus.gpu_uuid, errors.error_ms
from errors
inner join (select distinct gpu_uuid, cluster, node, pci_bus_id from intermediate.int_gpu_inventory) as gpus
    on is_of_gpu(errors, gpus)
inner join temp.int_rank_gpus as ranks on gpus.gpu_uuid = ranks.gpu_uuid
