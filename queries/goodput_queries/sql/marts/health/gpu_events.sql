-- Events of GPUs in the scope's window: Xid and others, with the vendor's meaning of the code. An event that names its GPU
-- by PCI address has the GPU that was there.
-- grain: none (two sources may report one event)
-- gpu_uuid, gpu_index: null where the GPU is not known
-- event_at: when; ts_precision: exact, approximate, at_or_before
-- kind: xid, sxid, off_the_bus, reset_required, unresponsive, unhealthy
-- pci_bus_id: as reported, else the one of the GPU
-- code: of an Xid; meaning, severity, fault_domain, code_class, what_to_do: of the code, by the vendor's catalogue,
--  of an Xid 154 by its message
-- severity: where it varies, and of an sxid, by the word in the message
-- message: as it was logged
with found as (
    select
        events.* exclude (gpu_uuid, pci_bus_id, pid, process_name, node),
        coalesce(gpus.node, events.node) as node,
        coalesce(events.gpu_uuid, gpus.gpu_uuid) as gpu_uuid,
        gpus.gpu_index,
        gpus.gpu_model,
        coalesce(events.pci_bus_id, gpus.pci_bus_id) as pci_bus_id
    from staging.stg_gpu_events as events
    left join intermediate.int_gpu_inventory as gpus
        on is_of_gpu(events, gpus)
        and events.at_ms >= coalesce(gpus.start_ms, 0)
        and events.at_ms < coalesce(gpus.end_ms, forever_ms())
    where in_window(events.at_ms, events.at_ms + 1)
)

select
    found.* exclude (gpu_model, at_ms),
    from_ms(found.at_ms) as event_at,
    codes.meaning,
    error_severity(found.kind, codes.severity, found.message) as severity,
    codes.fault_domain,
    codes.class as code_class,
    coalesce(recovery_action(found.kind, found.code, found.message), codes.recommended_action) as what_to_do
from found
left join reference.xid_codes as codes on found.kind = 'xid' and found.code = codes.xid
where in_place(found.cluster, found.node, found.gpu_uuid, found.gpu_model)
