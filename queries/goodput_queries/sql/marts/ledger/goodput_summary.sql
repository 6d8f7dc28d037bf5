-- Goodput and its component ratios of the scope, with the cost of badput: one row. A ratio whose denominator lacks
-- evidence is null, and its reason column explains why.
-- grain: none (one row)
-- evaluated: first
-- access: team
-- definition_version: of goodput; see macros/ratios.sql
-- useful_ms: productive, communication, step not split (and declared work, where evaluation counts)
-- goodput_ratio: the headline: useful / capacity (of a team, user, run, partition: / what was allocated to it)
-- goodput_hi_ratio: upper bound, if all unclassified time was useful: (useful + unsettled) / capacity
-- availability_ratio: (capacity - not available) / capacity
-- allocation_ratio: allocated / (capacity - not available)
-- scheduling_ratio: (allocated - gang wait) / capacity
-- scheduler_reason: why these three are null: node states or accounting cover less than half of the capacity
-- runtime_lo_ratio, runtime_hi_ratio: retained step time / (allocated - gang wait); upper bound includes unclassified time
-- runtime_reason: why they are null: more than half of allocated - gang wait is unclassified
-- program_ratio: useful / retained step time
-- program_reason: why it is null: more than half of the retained step time has no measured breakdown
-- communication_ratio: communication / retained step time, of runs and steps that measure it; null: none does
-- communication_step_ms: retained step time with measured communication
-- communication_runs: runs that measure communication
-- active_ratio: share of the allocated time with evidence in which GPUs are neither idle nor waiting for the rest of a gang
-- coverage_ratio: share of allocated time that evidence classifies
-- wasted_cost: badput, not counting time that is not settled
with scheduled as (
    select cluster from intermediate.int_job_runs where not is_inferred
    union
    select cluster from intermediate.int_node_states
),

gpus_ as (
    select gpus.gpu_uuid
    from (
        select cluster, node, gpu_uuid, gpu_model, job_run_key
        from intermediate.int_ledger_segments
        where in_window(start_ms, end_ms)
        union all
        select cluster, node, gpu_uuid, gpu_model, job_run_key
        from state.ledger_archive
        where in_window(hour_ms, hour_ms + one_hour_ms())
    ) as gpus
    left join intermediate.int_job_run_owners as owners using (job_run_key)
    where in_scope(
        gpus.cluster, gpus.node, gpus.gpu_uuid, gpus.gpu_model,
        owners.team, owners.user_name, owners.run_key, owners.partition
    )
),

parts as (
    select
        category,
        run_key,
        is_serving(phase) as is_serving,
        cluster in (from scheduled) as is_scheduled,
        sum(gpu_ms) as gpu_ms,
        sum(cost) as cost,
        coalesce(sum(gpu_ms) filter (where cost is null), 0)::bigint as unpriced_gpu_ms
    from marts.ledger_scoped_by_node
    group by all
),

sums as (
    select
        coalesce(sum(gpu_ms), 0)::bigint as capacity_ms,
        coalesce(sum(gpu_ms) filter (where is_scheduled), 0)::bigint as scheduled_ms,
        coalesce(sum(gpu_ms) filter (where categories.group = 'held'), 0)::bigint as held_ms,
        coalesce(sum(gpu_ms) filter (where categories.group = 'not_available'), 0)::bigint as unavailable_ms,
        coalesce(sum(gpu_ms) filter (where categories.group = 'free'), 0)::bigint as free_ms,
        coalesce(sum(gpu_ms) filter (where category = 'gang_wait'), 0)::bigint as gang_wait_ms,
        coalesce(sum(gpu_ms) filter (where category in ('idle_held', 'gang_wait', 'suspended')), 0)::bigint as inactive_ms,
        coalesce(sum(gpu_ms) filter (where is_kept_step(category)), 0)::bigint as kept_step_ms,
        coalesce(sum(gpu_ms) filter (where is_useful(category)), 0)::bigint as useful_ms,
        coalesce(sum(gpu_ms) filter (where category = 'productive'), 0)::bigint as productive_ms,
        coalesce(sum(gpu_ms) filter (where category = 'step_unsplit'), 0)::bigint as step_unsplit_ms,
        coalesce(sum(gpu_ms) filter (where category = 'unknown'), 0)::bigint as unknown_ms,
        coalesce(sum(gpu_ms) filter (where category = 'busy_unclassified'), 0)::bigint as busy_ms,
        coalesce(sum(gpu_ms) filter (where is_unsettled(category)), 0)::bigint as unsettled_ms,
        coalesce(sum(gpu_ms) filter (where categories.kind = 'badput'), 0)::bigint as wasted_ms,
        case
            when sum(cost) is not null then coalesce(sum(cost) filter (where categories.kind = 'badput'), 0)
        end as wasted_cost,
        sum(cost) as capacity_cost,
        coalesce(sum(unpriced_gpu_ms), 0)::bigint as unpriced_gpu_ms,
        (select count(distinct gpu_uuid) from gpus_) as gpus,
        count(distinct run_key) as runs
    from parts
    inner join reference.gpu_second_categories as categories using (category)
),

by_run as (
    select
        sum(gpu_ms) filter (
            where category in ('throttled', 'straggler_wait', 'exposed_comm', 'productive')
            -- of a run that does not measure its waits for late ranks the rest of a step is not split
            or (category = 'step_unsplit' and not splits)
        ) as split_ms,
        sum(gpu_ms) filter (where category = 'exposed_comm') as communication_ms
    from (
        select run_key, category, gpu_ms, bool_or(category = 'productive') over (partition by run_key) as splits
        from parts
        where run_key is not null and not is_serving
    )
    group by run_key
    -- where both waits and transfers are measured the rest of a step is productive
    having count(*) filter (where category in ('exposed_comm', 'productive')) > 0
),

communication as (
    select
        coalesce(sum(communication_ms), 0) / sum(split_ms) as communication_ratio,
        coalesce(sum(split_ms), 0)::bigint as communication_step_ms,
        count(*) as communication_runs
    from by_run
)

select
    definition_version() as definition_version,
    *,
    goodput_ratio(useful_ms, capacity_ms) as goodput_ratio,
    goodput_hi_ratio(useful_ms, unsettled_ms, capacity_ms) as goodput_hi_ratio,
    case when 2 * scheduled_ms >= capacity_ms then availability_ratio(capacity_ms, unavailable_ms) end
        as availability_ratio,
    case when 2 * scheduled_ms >= capacity_ms then allocation_ratio(held_ms, capacity_ms, unavailable_ms) end
        as allocation_ratio,
    case when 2 * scheduled_ms >= capacity_ms then scheduling_ratio(held_ms, gang_wait_ms, capacity_ms) end
        as scheduling_ratio,
    case when 2 * scheduled_ms < capacity_ms then 'not measured (needs node states or accounting)' end
        as scheduler_reason,
    runtime_lo_ratio(kept_step_ms, unsettled_ms, held_ms, gang_wait_ms) as runtime_lo_ratio,
    runtime_hi_ratio(kept_step_ms, unsettled_ms, held_ms, gang_wait_ms) as runtime_hi_ratio,
    not_measured(has_runtime(unsettled_ms, held_ms, gang_wait_ms), unsettled_ms, held_ms - gang_wait_ms)
        as runtime_reason,
    program_ratio(useful_ms, kept_step_ms, step_unsplit_ms) as program_ratio,
    not_measured(has_program(kept_step_ms, step_unsplit_ms), step_unsplit_ms, kept_step_ms) as program_reason,
    active_ratio(inactive_ms, unknown_ms, held_ms) as active_ratio,
    coverage_ratio(unknown_ms, busy_ms, held_ms) as coverage_ratio
from sums
cross join communication
