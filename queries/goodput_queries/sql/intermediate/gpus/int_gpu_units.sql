-- The parts of GPUs that the ledger counts: a whole GPU, a MIG instance, the rest of a MIG GPU, a share; each
-- with the share of its GPU and the time it is in the inventory. The shares of a GPU add up to 1.
-- grain: gpu_uuid, gpu_instance, start_ms
-- gpu_instance: '' for a whole GPU, 'rest' for what no instance covers
-- share_lo: lower end of the share, in parts of share_of
-- share_hi: upper end of the share
-- end_ms: null: still there
-- method: inventory, or holds (no inventory: the GPUs that job runs had at one time)
-- materialised: full, since every later stage joins it
-- change_tracking: start_ms, end_ms
with claims as (select * from intermediate.int_gpu_claims where start_ms is not null),

-- a GPU is in one place at a time: an inventory comes before a node where only job runs held it, of two places from the same time
-- on a dated one counts, then one that has not ended, then the first by name
chosen as (
    select claims.*
    from claims
    anti join claims as inventory
        on claims.method = 'holds'
        and inventory.method = 'inventory'
        and claims.gpu_uuid = inventory.gpu_uuid
        and claims.start_ms >= inventory.start_ms
        and claims.start_ms < coalesce(inventory.end_ms, forever_ms())
    qualify row_number() over (
        partition by claims.gpu_uuid, claims.start_ms
        order by claims.method = 'inventory' desc, claims.is_dated desc, claims.end_ms desc nulls first, claims.cluster, claims.node
    ) = 1
),

-- and it has left a place when it came to another
gpus as (
    select * replace (least(end_ms, lead(start_ms) over (partition by gpu_uuid order by start_ms)) as end_ms)
    from chosen
),

parts as (select * from intermediate.int_gpu_instances where not is_beyond),

-- a new MIG layout of a GPU, or a switch between whole and MIG, splits its units in time
bounds as (
    select gpu_uuid, start_ms as stay_ms, start_ms as at_ms from gpus
    union
    select gpu_uuid, start_ms, coalesce(end_ms, forever_ms()) from gpus
    union
    select gpus.gpu_uuid, gpus.start_ms, unnest([parts.valid_from_ms, parts.valid_to_ms])
    from gpus
    inner join parts using (gpu_uuid)
),

cells as (
    select
        bounds.gpu_uuid,
        bounds.stay_ms,
        bounds.at_ms as start_ms,
        lead(bounds.at_ms) over (partition by bounds.gpu_uuid, bounds.stay_ms order by bounds.at_ms) as end_ms
    from bounds
    inner join gpus on bounds.gpu_uuid = gpus.gpu_uuid and bounds.stay_ms = gpus.start_ms
    where
        bounds.at_ms >= gpus.start_ms
        and bounds.at_ms <= coalesce(gpus.end_ms, forever_ms())
),

-- in each cell the instances lie end to end; equal parts of one have its place
laid as (
    select
        cells.*,
        parts.* exclude (gpu_uuid, slurm_index, valid_from_ms, valid_to_ms, is_beyond),
        (sum(parts.compute_slices) filter (where parts.nth = 0) over up_to_it)::bigint as slices_hi
    from cells
    inner join parts
        on cells.gpu_uuid = parts.gpu_uuid
        and coalesce(parts.valid_from_ms, cells.start_ms) <= cells.start_ms
        and coalesce(parts.valid_to_ms, cells.end_ms) >= cells.end_ms
    where cells.end_ms is not null
    window up_to_it as (
        partition by cells.gpu_uuid, cells.start_ms
        order by parts.slurm_index, read_instance(parts.gpu_instance), parts.nth, parts.gpu_instance
        rows unbounded preceding
    )
),

units as (
    select
        gpu_uuid, stay_ms, start_ms, end_ms, gpu_instance, profile,
        (slices_hi - compute_slices) * parts + compute_slices * nth as share_lo,
        (slices_hi - compute_slices) * parts + compute_slices * (nth + 1) as share_hi,
        slices_of::bigint * parts as share_of
    from laid
    union all
    select gpu_uuid, stay_ms, start_ms, end_ms, 'rest', null, max(slices_hi), max(slices_of), max(slices_of)
    from laid
    group by gpu_uuid, stay_ms, start_ms, end_ms
    having max(slices_hi) < max(slices_of)
    union all
    select cells.gpu_uuid, cells.stay_ms, cells.start_ms, cells.end_ms, '', null, 0, 1, 1
    from cells
    anti join laid using (gpu_uuid, start_ms)
    where cells.end_ms is not null
)

select
    gpus.cluster,
    gpus.node,
    gpus.gpu_uuid,
    units.gpu_instance,
    units.profile as mig_profile,
    gpus.gpu_model,
    gpus.gpu_index,
    gpus.slurm_index,
    units.share_lo,
    units.share_hi,
    units.share_of,
    units.start_ms,
    nullif(units.end_ms, forever_ms()) as end_ms,
    gpus.method
from gpus
inner join units on gpus.gpu_uuid = units.gpu_uuid and gpus.start_ms = units.stay_ms
where gpus.start_ms is not null and units.end_ms > units.start_ms
