-- Allocations that use little of their GPUs, or do not use some of them, and what would have been enough. Of whole GPUs,
-- by the ten-minute roll-up outside start-up, where at least threshold low_use_min_ms of it was read.
-- grain: job_run_key
-- access: team
-- skip_if_empty: intermediate.int_held_use
-- rule: unused_gpus: GPUs active in no reading after start-up; low_use: mean activity of SMs, tensor cores and memory interface
--  all under thresholds low_use_sm_ratio, low_use_tensor_ratio, low_use_dram_ratio; busy_without_work: kernels run all the time,
--  and tensor cores and memory do nothing; half_use: mean activity under half_use_ratio for half_use_min_ms, without an engine;
--  low_occupancy: busy SMs hold few warps, and no tensor cores work; below_full_use: kernels run for less than full_use_ratio;
--  memory_bound: memory is busy and tensor cores are not
-- node, gpu_uuid: null where the job run had several
-- start_at, end_at: first and last ten minutes that were looked at
-- gpus: number of GPUs read; unused_gpus: of them never active
-- use_ratio: mean of use_metric (SM active, else engine active, else GPU utilisation)
-- gpu_busy_ratio, tensor_active_ratio, dram_active_ratio, power_w: mean; null: not measured
-- memory_bytes: of a GPU of this model
-- needed_gpus: GPUs that its load would fill to threshold right_size_ratio, by the busiest ten minutes and memory; null where the
--  memory is not known
-- mig_profile: smallest MIG profile with room for the load of a single GPU; null: none, or it has several
-- held_gpu_ms: allocated time in the scope, milliseconds of a whole GPU
-- gpu_ms: of it what the smaller allocation would have left to others; cost: of that, null without a price
-- what_to_do: with a larger batch where most of the memory is free and tensor cores are hardly used; else null
-- effect: unconfirmed: how much of it would do is not known
-- score: distance from the limit as a share of it; for unused GPUs their share
-- confidence: Confirmed where SM, tensor and memory activity are measured, else Likely
with sizes as (
    select gpu_uuid, max(memory_bytes) as memory_bytes from staging.stg_gpus group by gpu_uuid
),

engines as (select distinct job_run_key from intermediate.int_serving_gpus where job_run_key is not null),

-- saves have findings of their own
saves as (
    select job_run_key, sum(scope_end(end_ms) - scope_start(start_ms)) as save_ms
    from intermediate.int_run_timeline
    where category = 'checkpoint_save' and in_window(start_ms, end_ms)
    group by job_run_key
),

of_jobs as (
    select
        gpus.job_run_key,
        any_value(gpus.cluster) as cluster,
        case when count(distinct gpus.node) = 1 then any_value(gpus.node) end as node,
        case when count(*) = 1 then any_value(gpus.gpu_uuid) end as gpu_uuid,
        any_value(gpus.gpu_model) as gpu_model,
        min(gpus.first_ms) as first_ms,
        max(columns(['last_ms', 'bins', 'memory_peak_bytes'])),
        count(*) as gpus,
        count(*) filter (where gpus.is_unused) as unused_gpus,
        min(gpus.use_metric) as use_metric,
        sum(gpus.use_ratio * gpus.bins) / sum(gpus.bins) as use_ratio,
        sum(gpus.gpu_busy_ratio * gpus.bins) / sum(gpus.bins) filter (where gpus.gpu_busy_ratio is not null) as gpu_busy_ratio,
        avg(gpus.power_w) as power_w,
        sum(gpus.sm_occupancy_ratio * gpus.bins) / sum(gpus.bins) filter (where gpus.sm_occupancy_ratio is not null)
            as sm_occupancy_ratio,
        sum(gpus.tensor_active_ratio * gpus.bins) / sum(gpus.bins) filter (where gpus.tensor_active_ratio is not null)
            as tensor_active_ratio,
        sum(gpus.dram_active_ratio * gpus.bins) / sum(gpus.bins) filter (where gpus.dram_active_ratio is not null)
            as dram_active_ratio,
        sum(gpus.busy_ratio) as busy_sum,
        sum(case when gpus.is_unused then 0 else gpus.memory_peak_bytes end) as memory_sum_bytes,
        min(sizes.memory_bytes) as memory_bytes,
        bool_or(engines.job_run_key is not null) as is_engine
    from intermediate.int_held_use as gpus
    left join sizes using (gpu_uuid)
    left join engines using (job_run_key)
    group by gpus.job_run_key
),

judged as (
    select
        *,
        use_ratio < threshold('low_use_sm_ratio')
        and coalesce(tensor_active_ratio < threshold('low_use_tensor_ratio'), true)
        and coalesce(dram_active_ratio < threshold('low_use_dram_ratio'), true) as is_low,
        -- an engine works as far as it is asked to
        bins * ten_minutes_ms() >= threshold('half_use_min_ms') and not is_engine as is_long,
        is_long and use_ratio < threshold('half_use_ratio') as is_half,
        is_long
        and use_metric = 'SM active'
        and sm_occupancy_ratio < threshold('low_occupancy_ratio') * use_ratio
        -- kernels of tensor cores are quick with few warps
        and tensor_active_ratio < threshold('low_occupancy_tensor_ratio') as is_thin,
        is_long
        and gpu_busy_ratio + coalesce(saves.save_ms, 0) / (last_ms - first_ms) < threshold('full_use_ratio') as is_below,
        greatest(use_ratio, gpu_busy_ratio) >= threshold('hollow_use_ratio')
        and tensor_active_ratio < threshold('hollow_tensor_ratio')
        -- counters that are stuck are at 0
        and dram_active_ratio > 0
        and dram_active_ratio < threshold('hollow_dram_ratio') as is_hollow,
        coalesce(
            dram_active_ratio >= threshold('bound_dram') and tensor_active_ratio < threshold('memory_bound_tensor_ratio'), false
        ) as is_memory_bound,
        coalesce(
            memory_peak_bytes < threshold('small_memory_ratio') * memory_bytes
            and tensor_active_ratio < threshold('low_occupancy_tensor_ratio'),
            false
        ) as has_room
    from of_jobs
    left join saves using (job_run_key)
),

sized as (
    select
        *,
        case
            -- an allocation that did nothing needs no GPU
            when unused_gpus = gpus then 0
            when not is_low then gpus - unused_gpus
            when memory_bytes > 0 then least(gpus - unused_gpus, greatest(
                1,
                ceil(busy_sum / threshold('right_size_ratio')),
                ceil(memory_sum_bytes / (memory_bytes * threshold('right_size_ratio')))
            ))::bigint
        end as needed_gpus,
        case
            when
                gpus = 1 and unused_gpus = 0 and not is_memory_bound
                -- models that can be partitioned
                and regexp_matches(lower(gpu_model), 'a100|h100|h200|h20|b100|b200|b300|gh200|gb200|gb300')
                then (
                    select arg_min({'profile': profile, 'share': sm_sevenths / 7}, (sm_sevenths, memory_eighths))
                    from reference.mig_profiles as profiles
                    where
                        profiles.sm_sevenths / 7 * threshold('right_size_ratio') >= judged.busy_sum
                        and profiles.memory_eighths / 8 * judged.memory_bytes * threshold('right_size_ratio')
                            >= judged.memory_peak_bytes
                )
        end as mig
    from judged
    where is_low or is_half or unused_gpus > 0 or coalesce(is_hollow, false) or coalesce(is_thin, false) or coalesce(is_below, false)
        or is_memory_bound
),

priced as (
    select
        sized.*,
        case
            when unused_gpus > 0 then 'unused_gpus'
            when is_low then 'low_use'
            when is_hollow then 'busy_without_work'
            when is_half then 'half_use'
            when is_memory_bound then 'memory_bound'
            when is_thin then 'low_occupancy'
            else 'below_full_use'
        end as rule,
        prices.held_ms,
        prices.price_per_gpu_h,
        prices.held_ms * case
            when sized.mig is not null then 1 - sized.mig.share
            else 1 - sized.needed_gpus / sized.gpus
        end as spare_ms
    from sized
    left join intermediate.int_job_run_prices as prices using (job_run_key)
)

select
    priced.rule,
    priced.cluster,
    priced.node,
    priced.gpu_uuid,
    priced.job_run_key,
    owners.run_key,
    owners.run_id,
    owners.job_name,
    owners.team,
    owners.user_name,
    from_ms(priced.first_ms) as start_at,
    from_ms(priced.last_ms) as end_at,
    priced.gpus,
    priced.unused_gpus,
    priced.use_metric,
    priced.needed_gpus,
    priced.use_ratio,
    priced.gpu_busy_ratio,
    priced.tensor_active_ratio,
    priced.dram_active_ratio,
    priced.power_w,
    priced.memory_bytes,
    priced.mig.profile as mig_profile,
    priced.held_ms::bigint as held_gpu_ms,
    priced.spare_ms::bigint as gpu_ms,
    priced.spare_ms / 3600000.0 * priced.price_per_gpu_h as cost,
    case when priced.rule = 'low_use' and priced.spare_ms is null then 'unconfirmed' end as effect,
    case
        when priced.rule = 'unused_gpus' then priced.unused_gpus / priced.gpus
        else 1 - priced.use_ratio / threshold('low_use_sm_ratio')
    end as score,
    case
        -- arithmetic outside of tensor cores and caches looks the same
        when priced.rule in ('busy_without_work', 'low_occupancy') then 'Not confirmed'
        when
            priced.use_metric = 'SM active' and priced.tensor_active_ratio is not null and priced.dram_active_ratio is not null
            then 'Confirmed'
        else 'Likely'
    end as confidence,
    case
        when priced.has_room and priced.rule in ('low_use', 'half_use', 'low_occupancy') then printf(
            '%s; or try a larger batch: at most %.0f %% of the memory of a GPU is in use',
            rules.action, 100 * priced.memory_peak_bytes / priced.memory_bytes
        ) || case
            when priced.rule = 'half_use' then printf(
                '; if it cannot be faster, two such jobs may share its GPUs by MPS: together they use %.0f %%', 200 * priced.use_ratio
            )
            else ''
        end
    end as what_to_do,
    case when priced.rule in ('busy_without_work', 'below_full_use') then coalesce(printf('GPU utilisation %.1f %%, ', 100 * priced.gpu_busy_ratio), '') else '' end
    || priced.use_metric || ' ' || printf('%.1f', 100 * priced.use_ratio) || ' % of the time on average'
    || coalesce(', tensor active ' || printf('%.1f', 100 * priced.tensor_active_ratio) || ' %', '')
    || coalesce(', memory interface active ' || printf('%.1f', 100 * priced.dram_active_ratio) || ' %', '')
    || coalesce(', SM occupancy ' || printf('%.1f', 100 * case when priced.rule = 'low_occupancy' then priced.sm_occupancy_ratio end) || ' %', '')
    || coalesce(', power ' || printf('%.0f', priced.power_w) || ' W', '')
    || coalesce(', memory peak ' || printf('%.1f', priced.memory_peak_bytes / 1e9) || ' GB', '')
    || case
        when priced.unused_gpus > 0
            then '; ' || priced.unused_gpus || ' of ' || priced.gpus || ' GPUs were active in no reading after start-up'
        else ''
    end
    || coalesce('; MIG profile ' || priced.mig.profile || ' has room for the load', case
        when priced.needed_gpus < priced.gpus - priced.unused_gpus
            then '; ' || priced.needed_gpus || ' of ' || priced.gpus || ' GPUs have room for the load'
        when priced.rule = 'low_use' and priced.needed_gpus = priced.gpus then '; no smaller allocation has room for its peaks'
        else ''
    end) as evidence
from priced
inner join reference.finding_rules as rules using (rule)
left join intermediate.int_job_run_owners as owners using (job_run_key)
where
    of_owner(owners.team, owners.user_name, owners.run_key, owners.partition)
    and priced.job_run_key in (
        select job_run_key from intermediate.int_held_use where in_place(cluster, node, gpu_uuid, gpu_model)
    )
