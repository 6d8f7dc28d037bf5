-- Stays of GPUs in nodes by inventories alone: the rows of int_gpu_inventory before readings show which GPU replaced
-- another. A GPU with a known UUID replaces the slot of the same node and index; the dates of an inventory file take
-- precedence.
-- grain: gpu_uuid, stay
-- start_ms: null: as far back as there is evidence
-- end_ms: start of the GPU's next stay, or its reported removal; null: neither
-- is_dated: the dates come from an inventory file and are not widened by other evidence
-- others_ms: when other GPUs were first reported in its place, later than itself; null: never
-- materialised: full, since it changes with inventories alone, and what asks it with every reading
-- change_tracking: all
-- since when sources name the GPU of a place by its UUID: a table without UUIDs counts before
with by_uuid as (
    select cluster, node, gpu_index, min(coalesce(valid_from_ms, 0)) as from_ms
    from staging.stg_gpus
    where not contains(gpu_uuid, '#') and gpu_index is not null
    group by all
),

reported as materialized (
    select gpus.* replace (least(gpus.valid_to_ms, by_uuid.from_ms) as valid_to_ms)
    from staging.stg_gpus as gpus
    left join by_uuid
        on gpus.cluster = by_uuid.cluster
        and gpus.node = by_uuid.node
        and gpus.gpu_index = by_uuid.gpu_index
        and not gpus.is_slot
        and ends_with(gpus.gpu_uuid, '#' || gpus.gpu_index)
    where coalesce(gpus.valid_from_ms < by_uuid.from_ms, by_uuid.from_ms is null)
),

cut as (
    select distinct gpus.cluster, gpus.node
    from reported as gpus
    semi join staging.stg_gpu_instances as parts using (gpu_uuid)
    -- where a source numbers GPUs as the scheduler does, nothing is to be counted
    anti join reported as numbered
        on gpus.cluster = numbered.cluster
        and gpus.node = numbered.node
        and not numbered.is_slot
        and numbered.slurm_index is not null
    where gpus.is_slot
),

-- a scheduler numbers the instances of a cut node: its GPUs come in their order
counted as (
    select
        gpus.gpu_uuid,
        dense_rank() over (partition by gpus.cluster, gpus.node order by gpus.slurm_index) - 1 as place
    from reported as gpus
    semi join cut using (cluster, node)
    where gpus.is_slot
),

gpus as (
    select
        gpus.*,
        -- a source that does not know the scheduler's order gives NVML's
        coalesce(counted.place, gpus.slurm_index, gpus.gpu_index) as place
    from reported as gpus
    left join (select distinct * from counted) as counted using (gpu_uuid)
    -- what a node offers as GPUs may be shares of those that a source names
    left join staging.stg_time_sliced as sliced
        on gpus.cluster = sliced.cluster and gpus.node = sliced.node and gpus.is_slot
    where sliced.replicas is null
),

named as (
    select distinct cluster, node, place
    from gpus
    where not is_slot and place is not null
),

-- a slot that gives way leaves its evidence that a GPU stood there
slots as (
    select cluster, node, place, bool_or(valid_from_ms is null) as is_undated
    from gpus
    where is_slot
    group by all
),

standing as (
    select
        gpus.* exclude (valid_from_ms),
        case
            when gpus.source = 'inventory' or not coalesce(slots.is_undated, false)
                then gpus.valid_from_ms
        end as valid_from_ms
    from gpus
    left join named
        on gpus.cluster = named.cluster and gpus.node = named.node and gpus.place = named.place
    left join slots
        on gpus.cluster = slots.cluster and gpus.node = slots.node and gpus.place = slots.place
    where not gpus.is_slot or named.node is null
),

-- what an inventory says of a GPU on a node others need not say
candidates as (
    select standing.*
    from standing
    left join (select distinct gpu_uuid, node, true as is_listed from standing where source = 'inventory') as listed
        on standing.gpu_uuid = listed.gpu_uuid and standing.node is not distinct from listed.node
    where standing.source = 'inventory' or listed.is_listed is null
),

-- but they complete what it lacks
facts as (
    select gpu_uuid, node, max(pci_bus_id) as pci_bus_id, max(gpu_model) as gpu_model
    from standing
    group by gpu_uuid, node
),

-- one order of all is cheaper than one of each of many GPUs
moves as (
    select
        *,
        (gpu_uuid, node) is distinct from lag((gpu_uuid, node)) over (
            order by gpu_uuid, valid_from_ms nulls first, node, source
        ) as is_move
    from candidates
),

stays as (
    select
        *,
        sum(is_move::integer) over (
            order by gpu_uuid, valid_from_ms nulls first, node, source rows unbounded preceding
        ) as stay
    from moves
),

per_stay as (
    select
        gpu_uuid,
        stay,
        any_value(cluster) as cluster,
        any_value(node) as node,
        -- a reboot may give GPUs other numbers
        arg_max(slurm_index, coalesce(valid_from_ms, -1)) as slurm_index,
        arg_max(gpu_index, coalesce(valid_from_ms, -1)) as gpu_index,
        max(valid_from_ms) as reported_ms,
        max(pci_bus_id) as pci_bus_id,
        max(gpu_model) as gpu_model,
        bool_and(is_slot) as is_slot,
        bool_or(source = 'inventory') as is_dated,
        case when count(*) = count(valid_from_ms) then min(valid_from_ms) end as first_from_ms,
        case when count(*) = count(valid_to_ms) then max(valid_to_ms) end as last_to_ms
    from stays
    group by gpu_uuid, stay
),

-- another GPU that was reported later for the same place
others as (
    select per_stay.gpu_uuid, per_stay.stay, list(others.reported_ms order by others.reported_ms) as others_ms
    from per_stay
    inner join per_stay as others
        on per_stay.cluster = others.cluster
        and per_stay.node = others.node
        and per_stay.gpu_index = others.gpu_index
        and per_stay.gpu_uuid <> others.gpu_uuid
        and per_stay.reported_ms < others.reported_ms
        and not (per_stay.is_dated or others.is_dated or per_stay.is_slot or others.is_slot)
    group by all
)

select
    per_stay.cluster,
    per_stay.node,
    per_stay.gpu_uuid,
    stay,
    is_slot,
    gpu_index,
    slurm_index,
    coalesce(per_stay.pci_bus_id, facts.pci_bus_id) as pci_bus_id,
    coalesce(per_stay.gpu_model, facts.gpu_model) as gpu_model,
    is_dated,
    first_from_ms as start_ms,
    least(
        last_to_ms,
        case when lead(per_stay.gpu_uuid) over in_order = per_stay.gpu_uuid then lead(first_from_ms) over in_order end
    ) as end_ms,
    others.others_ms
from per_stay
left join others using (gpu_uuid, stay)
left join facts on per_stay.gpu_uuid = facts.gpu_uuid and per_stay.node is not distinct from facts.node
window in_order as (order by per_stay.gpu_uuid, stay)
