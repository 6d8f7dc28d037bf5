-- GPUs of attempts for which a hardware error was recorded (Xid: ECC, NVLink, off the bus and others).
-- grain: none (errors)
-- error_ms: when
with errors as (
    select events.gpu_uuid, events.node, events.pci_bus_id, to_ms(events.ts) as error_ms
    from raw.gpu_events as events
    inner join reference.xid_codes as codes on events.code = codes.xid
    where
        codes.fault_domain = 'hardware'
        -- a latch first seen at start-up may have been set months ago
        and (events.ts_precision <> 'at_or_before' or events.source not in ('dcgm', 'prometheus'))
)

select ranks.attempt_key, gpus.gpu_uuid, errors.error_ms
from errors
inner join (select distinct gpu_uuid, node, pci_bus_id from intermediate.int_gpu_inventory) as gpus
    on errors.gpu_uuid = gpus.gpu_uuid
    or (errors.gpu_uuid is null and errors.node = gpus.node and errors.pci_bus_id = gpus.pci_bus_id)
inner join temp.int_rank_gpus as ranks on gpus.gpu_uuid = ranks.gpu_uuid
