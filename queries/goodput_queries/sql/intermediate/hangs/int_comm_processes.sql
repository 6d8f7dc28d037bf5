-- Each rank of each communicator that NCCL named: its process, and its GPU by UUID, PCI address or number.
-- grain: cluster, comm_id, rank, address, pid
-- node: the address where no name is known
-- gpu_uuid: as the source says it, else the node's GPU with that PCI address, else with that number (NVML's)
with processes as (
    select
        cluster,
        comm_id,
        rank,
        pid,
        coalesce(node, address) as node,
        max(ranks) as ranks,
        max(gpu_index) as gpu_index,
        max(pci_bus_id) as pci_bus_id,
        max(gpu_uuid) as gpu_uuid,
        bool_or(is_world) as is_world,
        min(seen_ms) as first_seen_ms,
        max(seen_ms) as last_seen_ms
    from staging.stg_rank_map
    group by cluster, comm_id, rank, pid, coalesce(node, address)
),

gpus as (
    select cluster, node, gpu_uuid, gpu_index, pci_bus_id, start_ms, end_ms
    from intermediate.int_gpu_inventory
    where not is_slot
)

select
    processes.* exclude (gpu_uuid),
    coalesce(processes.gpu_uuid, by_address.gpu_uuid, by_number.gpu_uuid) as gpu_uuid
from processes
left join gpus as by_address
    on processes.cluster = by_address.cluster
    and processes.node = by_address.node
    and processes.pci_bus_id = by_address.pci_bus_id
    and coalesce(processes.last_seen_ms >= by_address.start_ms, true)
    and coalesce(processes.last_seen_ms < by_address.end_ms, true)
left join gpus as by_number
    on processes.cluster = by_number.cluster
    and processes.node = by_number.node
    and processes.gpu_index = by_number.gpu_index
    and coalesce(processes.last_seen_ms >= by_number.start_ms, true)
    and coalesce(processes.last_seen_ms < by_number.end_ms, true)
qualify row_number() over (
    partition by processes.cluster, processes.comm_id, processes.rank, processes.pid, processes.node
    order by
        by_address.start_ms desc nulls last,
        by_number.start_ms desc nulls last,
        by_address.gpu_uuid,
        by_number.gpu_uuid
) = 1
