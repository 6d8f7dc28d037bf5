-- The ratios of the scope with their bounds, and what the waste cost: one row.
-- grain: none (one row)
-- goodput_ratio: (productive + step_unsplit) / capacity, the headline; an upper value while step_unsplit is not 0
-- goodput_lo_ratio, goodput_hi_ratio: bounds of overall goodput: productive alone; and all that is not settled
-- availability_ratio: (capacity - not available) / capacity
-- allocation_ratio: held / (capacity - not available)
-- scheduling_ratio: (held - gang wait) / capacity
-- runtime_lo_ratio, runtime_hi_ratio: kept step time / (held - gang wait)
-- program_lo_ratio, program_hi_ratio: productive / kept step time; null if nothing was kept
-- coverage_ratio: share of held time that evidence settles
-- wasted_usd: badput, not counting time that is not settled
-- is_interval_wide: the bounds are so far apart that they are shown instead of one number
with parts as (
    select
        category,
        run_key,
        sum(gpu_ms) as gpu_ms,
        sum(usd) as usd,
        coalesce(sum(gpu_ms) filter (where usd is null), 0) as unpriced_gpu_ms
    from marts.ledger_scoped_by_node
    group by category, run_key
),

sums as (
    select
        coalesce(sum(gpu_ms), 0)::bigint as capacity_ms,
        coalesce(sum(gpu_ms) filter (where categories.group = 'held'), 0)::bigint as held_ms,
        coalesce(sum(gpu_ms) filter (where categories.group = 'not_available'), 0)::bigint as unavailable_ms,
        coalesce(sum(gpu_ms) filter (where categories.group = 'free'), 0)::bigint as free_ms,
        coalesce(sum(gpu_ms) filter (where category = 'gang_wait'), 0)::bigint as gang_wait_ms,
        coalesce(sum(gpu_ms) filter (where is_kept_step(category)), 0)::bigint as kept_step_ms,
        coalesce(sum(gpu_ms) filter (where category = 'productive'), 0)::bigint as productive_ms,
        coalesce(sum(gpu_ms) filter (where category = 'step_unsplit'), 0)::bigint as step_unsplit_ms,
        coalesce(sum(gpu_ms) filter (where category = 'unknown'), 0)::bigint as unknown_ms,
        coalesce(sum(gpu_ms) filter (where category = 'busy_unclassified'), 0)::bigint as busy_ms,
        coalesce(sum(gpu_ms) filter (where is_unsettled(category)), 0)::bigint as unsettled_ms,
        coalesce(sum(gpu_ms) filter (where categories.kind = 'badput'), 0)::bigint as wasted_ms,
        case
            when sum(usd) is not null then coalesce(sum(usd) filter (where categories.kind = 'badput'), 0)
        end as wasted_usd,
        sum(usd) as capacity_usd,
        coalesce(sum(unpriced_gpu_ms), 0)::bigint as unpriced_gpu_ms,
        (select count(distinct gpu_uuid) from marts.ledger_owned where not is_by_node) as gpus,
        count(distinct run_key) as runs
    from parts
    inner join reference.gpu_second_categories as categories using (category)
)

select
    *,
    goodput_ratio(productive_ms, step_unsplit_ms, capacity_ms) as goodput_ratio,
    overall_lo_ratio(productive_ms, capacity_ms) as goodput_lo_ratio,
    overall_hi_ratio(productive_ms, step_unsplit_ms, unsettled_ms, capacity_ms) as goodput_hi_ratio,
    availability_ratio(capacity_ms, unavailable_ms) as availability_ratio,
    allocation_ratio(held_ms, capacity_ms, unavailable_ms) as allocation_ratio,
    scheduling_ratio(held_ms, gang_wait_ms, capacity_ms) as scheduling_ratio,
    runtime_lo_ratio(kept_step_ms, held_ms, gang_wait_ms) as runtime_lo_ratio,
    runtime_hi_ratio(kept_step_ms, unsettled_ms, held_ms, gang_wait_ms) as runtime_hi_ratio,
    program_lo_ratio(productive_ms, kept_step_ms, unsettled_ms) as program_lo_ratio,
    program_hi_ratio(productive_ms, step_unsplit_ms, kept_step_ms, unsettled_ms) as program_hi_ratio,
    coverage_ratio(unknown_ms, busy_ms, held_ms) as coverage_ratio,
    overall_hi_ratio(productive_ms, step_unsplit_ms, unsettled_ms, capacity_ms)
        - overall_lo_ratio(productive_ms, capacity_ms) > threshold('interval_shown_over') as is_interval_wide
from sums
