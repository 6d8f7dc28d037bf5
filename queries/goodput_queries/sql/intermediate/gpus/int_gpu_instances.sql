-- Instances of partitioned GPUs (MIG, time-slicing) by their name in telemetry, with the scheduler's number. An inventory
-- file takes precedence for the layout of a GPU, then telemetry, then the scheduler, which does not report which
-- instances share a GPU.
-- grain: gpu_uuid, gpu_instance, valid_from_ms
-- gpu_instance: the GPU instance id; '<profile>.<n>' where only an inventory or a scheduler reports it
-- parts, nth: of how many equal parts of an instance that owners have at one time it is one, and which; 1, 0: undivided
-- compute_slices, slices_of: of the undivided instance
-- is_beyond: it does not fit on its GPU with those before it: not in the ledger, listed in marts.data_quality
-- valid_from_ms: null: as far back as there is evidence; so is how a GPU was cut when telemetry saw it first
-- materialised: full, since slots and units join it
-- skip_if_empty: raw.gpu_instances, staging.stg_owner_holds, intermediate.int_parts_of_gpus, raw.gpus where source = 'kubernetes'
-- change_tracking: all
with places as (
    select cluster || '/' || node || '#' || coalesce(slurm_index, gpu_index) as slot, gpu_uuid
    from intermediate.int_gpu_inventory
    where not is_slot
),

-- what allocates shares may know a GPU by its number alone
parts as (
    select parts.* replace (coalesce(places.gpu_uuid, parts.gpu_uuid) as gpu_uuid)
    from staging.stg_gpu_instances as parts
    left join places on parts.gpu_uuid = places.slot and parts.slices_of is not null
),

-- owners that labels report for one GPU at one time, where no source reports its parts
shared as (
    select distinct
        'sharers' as source,
        gpu_uuid,
        gpu_instance,
        'shared 1/' || split_part(gpu_instance, '/', 2) as profile,
        1 as compute_slices,
        split_part(gpu_instance, '/', 2)::integer as slices_of,
        null::integer as slurm_index,
        start_ms as valid_from_ms,
        end_ms as valid_to_ms
    from staging.stg_owner_holds
    where starts_with(gpu_instance, 'share.')
),

-- parts of a GPU that job runs have
allocated as (
    select gpu_uuid, gpu_instance, slices, slices_of, nth, start_ms, coalesce(end_ms, forever_ms()) as end_ms
    from intermediate.int_parts_of_gpus
    where gpu_uuid is not null
),

edges as (
    select gpu_uuid, start_ms as at_ms from allocated
    union
    select gpu_uuid, end_ms from allocated
),

allocated_and_left as (
    select
        gpu_uuid,
        gpu_instance,
        'shared ' || slices || '/' || slices_of as profile,
        slices as compute_slices,
        slices_of,
        -- behind whole GPUs, which are allocated first
        (100000 + nth)::integer as slurm_index,
        start_ms as valid_from_ms,
        nullif(end_ms, forever_ms()) as valid_to_ms
    from allocated
    union all
    select
        cells.gpu_uuid,
        'share.free/' || max(allocated.slices_of),
        'shared ' || max(allocated.slices_of) - sum(allocated.slices) || '/' || max(allocated.slices_of),
        (max(allocated.slices_of) - sum(allocated.slices))::integer,
        max(allocated.slices_of),
        2000000000,
        cells.from_ms,
        nullif(cells.to_ms, forever_ms())
    from (
        select gpu_uuid, at_ms as from_ms, lead(at_ms) over (partition by gpu_uuid order by at_ms) as to_ms
        from edges
    ) as cells
    inner join allocated
        on cells.gpu_uuid = allocated.gpu_uuid
        and allocated.start_ms <= cells.from_ms
        and allocated.end_ms >= cells.to_ms
    group by cells.gpu_uuid, cells.from_ms, cells.to_ms
    having sum(allocated.slices) < max(allocated.slices_of)
),

offered as (
    select
        'kubernetes' as source,
        gpus.gpu_uuid,
        'share.' || share || '/' || gpus.replicas as gpu_instance,
        'shared 1/' || gpus.replicas as profile,
        1 as compute_slices,
        gpus.replicas::integer as slices_of,
        (gpus.place * gpus.replicas + share)::integer as slurm_index,
        null::bigint as valid_from_ms,
        null::bigint as valid_to_ms
    from (
        select
            inventory.gpu_uuid,
            sliced.replicas,
            dense_rank() over (
                partition by inventory.cluster, inventory.node order by inventory.gpu_index, inventory.gpu_uuid
            ) - 1 as place,
            unnest(range(sliced.replicas)) as share
        from intermediate.int_gpu_inventory as inventory
        inner join staging.stg_time_sliced as sliced using (cluster, node)
        where not inventory.is_slot and sliced.replicas is not null
    ) as gpus
),

reported as (
    select
        parts.*,
        regexp_full_match(parts.gpu_instance, '[0-9]{1,9}') as is_id,
        coalesce(gpus.cluster || '/' || gpus.node, regexp_extract(parts.gpu_uuid, '^(.*)#[0-9]+$', 1)) as node,
        coalesce(gpus.slurm_index, gpus.gpu_index) as place
    from (
        select * from parts
        union all by name
        select * from shared
        union all by name
        select 'sharers' as source, * from allocated_and_left
        union all by name
        select * from offered
    ) as parts
    left join intermediate.int_gpu_inventory as gpus using (gpu_uuid)
    qualify row_number() over (
        partition by parts.source, parts.gpu_uuid, parts.gpu_instance, parts.valid_from_ms
        order by gpus.start_ms desc nulls last, gpus.node, gpus.slurm_index, gpus.gpu_index
    ) = 1
),

-- late-arriving listings can overlap: an instance is there once
chosen as (
    select
        * replace (
            least(
                valid_to_ms,
                lead(valid_from_ms) over (
                    partition by source, gpu_uuid, gpu_instance order by valid_from_ms nulls first
                )
            ) as valid_to_ms
        )
    from reported
    qualify source = first_value(source) over (
        partition by gpu_uuid order by source <> 'inventory', not is_id, source
    )
),

-- within a profile ids and numbers go up together on a node
ids as (
    select
        *,
        row_number() over (partition by node, profile order by place, gpu_uuid, gpu_instance::integer) as nth
    from reported
    where is_id and valid_to_ms is null
    qualify source = first_value(source) over (partition by gpu_uuid order by source)
),

numbers as (
    select
        *,
        row_number() over (partition by node, profile order by slurm_index, gpu_uuid, gpu_instance) as nth
    from reported
    where not is_id and valid_to_ms is null
    qualify source = first_value(source) over (partition by node order by source <> 'inventory', source)
),

same as (
    select
        ids.gpu_uuid,
        ids.gpu_instance as id,
        numbers.slurm_index,
        case when ids.gpu_uuid = numbers.gpu_uuid then numbers.gpu_instance end as name
    from ids
    inner join numbers using (node, profile, nth)
    -- instances that one source reports by id and by name are distinct, however odd a name is
    where ids.source <> numbers.source
),

named as (
    select
        chosen.gpu_uuid,
        coalesce(by_name.id, chosen.gpu_instance) as gpu_instance,
        chosen.profile,
        chosen.compute_slices,
        coalesce(chosen.slices_of, 7) as slices_of,
        coalesce(chosen.slurm_index, by_id.slurm_index) as slurm_index,
        case
            when (not chosen.is_id and chosen.slices_of is null)
                or chosen.source = 'sharers'
                or chosen.valid_from_ms > min(chosen.valid_from_ms) over (partition by chosen.gpu_uuid)
                then chosen.valid_from_ms
        end as valid_from_ms,
        chosen.valid_to_ms
    from chosen
    left join same as by_name
        on chosen.gpu_uuid = by_name.gpu_uuid and chosen.gpu_instance = by_name.name and chosen.valid_to_ms is null
    left join same as by_id
        on chosen.gpu_uuid = by_id.gpu_uuid and chosen.gpu_instance = by_id.id and chosen.valid_to_ms is null
),

-- how full a GPU is whenever one of its parts begins
filled as (
    select
        moments.gpu_uuid,
        named.gpu_instance,
        named.valid_from_ms,
        sum(named.compute_slices / named.slices_of) over (
            partition by moments.gpu_uuid, moments.at_ms order by named.slurm_index, named.gpu_instance
            rows unbounded preceding
        ) as share
    from (select distinct gpu_uuid, coalesce(valid_from_ms, -9223372036854775808) as at_ms from named) as moments
    inner join named
        on moments.gpu_uuid = named.gpu_uuid
        and coalesce(named.valid_from_ms, moments.at_ms) <= moments.at_ms
        and coalesce(named.valid_to_ms, forever_ms()) > moments.at_ms
    where named.compute_slices between 1 and named.slices_of
),

fitting as (
    select gpu_uuid, gpu_instance, valid_from_ms
    from filled
    group by gpu_uuid, gpu_instance, valid_from_ms
    having max(share) < 1 + 1e-9
),

instances as (
    select named.*, 1 as parts, 0 as nth, fitting.gpu_uuid is null as is_beyond
    from named
    left join fitting
        on named.gpu_uuid = fitting.gpu_uuid
        and named.gpu_instance = fitting.gpu_instance
        and named.valid_from_ms is not distinct from fitting.valid_from_ms
),

-- equal parts of a MIG instance: of owners that labels report at one time, and those that a node offers to Kubernetes
divisions as (
    select distinct
        gpu_uuid,
        read_instance(gpu_instance) as gpu_instance,
        split_part(gpu_instance, '/', -1)::integer as parts,
        regexp_extract(gpu_instance, '([0-9]+)/[0-9]+$', 1)::integer as nth,
        start_ms,
        coalesce(end_ms, forever_ms()) as end_ms
    from staging.stg_owner_holds
    where contains(gpu_instance, '/share.')
    union all
    select distinct
        instances.gpu_uuid, instances.gpu_instance, sliced.parts, unnest(range(sliced.parts))::integer, 0, forever_ms()
    from instances
    inner join intermediate.int_gpu_inventory using (gpu_uuid)
    inner join staging.stg_sliced_instances as sliced using (cluster, node, profile)
),

-- the instance is whole before, between and after them
undivided as (
    select cells.*
    from (
        select
            gpu_uuid,
            gpu_instance,
            at_ms as start_ms,
            lead(at_ms) over (partition by gpu_uuid, gpu_instance order by at_ms) as end_ms
        from (select distinct gpu_uuid, gpu_instance, unnest([0, start_ms, end_ms, forever_ms()]) as at_ms from divisions)
    ) as cells
    anti join divisions
        on cells.gpu_uuid = divisions.gpu_uuid
        and cells.gpu_instance = divisions.gpu_instance
        and divisions.start_ms <= cells.start_ms
        and divisions.end_ms > cells.start_ms
    where cells.start_ms < forever_ms()
)

from instances
anti join divisions using (gpu_uuid, gpu_instance)
union all by name
select
    instances.* replace (
        concat_ws('/', instances.gpu_instance, 'share.' || cells.nth || '/' || nullif(cells.parts, 1)) as gpu_instance,
        cells.parts as parts,
        cells.nth as nth,
        greatest(instances.valid_from_ms, cells.start_ms) as valid_from_ms,
        nullif(least(instances.valid_to_ms, cells.end_ms), forever_ms()) as valid_to_ms
    )
from instances
inner join (
    from divisions
    union all by name
    select *, 1 as parts, 0 as nth from undivided
) as cells
    on instances.gpu_uuid = cells.gpu_uuid
    and instances.gpu_instance = cells.gpu_instance
    and coalesce(instances.valid_from_ms, 0) < cells.end_ms
    and coalesce(instances.valid_to_ms, forever_ms()) > cells.start_ms
