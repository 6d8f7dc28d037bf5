-- The main measures of the scope over time, in equal buckets of an hour or longer (variable scope_bucket_ms): what the tiles of
-- the Overview draw. Each is defined as in marts.goodput_summary.
-- grain: bucket_at
-- evaluated: first
-- access: team
-- bucket_at: start of the bucket, UTC
-- is_whole: the window holds the whole bucket
-- capacity_ms, held_ms, unavailable_ms, useful_ms, wasted_ms: milliseconds of a whole GPU
-- wasted_cost: null where no part of the bucket has a price
-- goodput_ratio, allocation_ratio, active_ratio, coverage_ratio: definition_version of goodput as in macros/ratios.sql
-- runs: number of runs with GPU time in the bucket
with buckets as (
    select
        scoped.hour_ms // sizes.length_ms * sizes.length_ms as bucket_ms,
        any_value(sizes.length_ms) as length_ms,
        sum(scoped.gpu_ms)::bigint as capacity_ms,
        coalesce(sum(scoped.gpu_ms) filter (where categories.group = 'held'), 0)::bigint as held_ms,
        coalesce(sum(scoped.gpu_ms) filter (where categories.group = 'not_available'), 0)::bigint as unavailable_ms,
        coalesce(sum(scoped.gpu_ms) filter (where is_useful(scoped.category)), 0)::bigint as useful_ms,
        coalesce(sum(scoped.gpu_ms) filter (where scoped.category in ('idle_held', 'gang_wait', 'suspended')), 0)::bigint as inactive_ms,
        coalesce(sum(scoped.gpu_ms) filter (where scoped.category = 'unknown'), 0)::bigint as unknown_ms,
        coalesce(sum(scoped.gpu_ms) filter (where scoped.category = 'busy_unclassified'), 0)::bigint as busy_ms,
        coalesce(sum(scoped.gpu_ms) filter (where categories.kind = 'badput'), 0)::bigint as wasted_ms,
        -- nothing wasted costs nothing; without any price it is not known
        case
            when sum(scoped.cost) is not null
                then coalesce(sum(scoped.cost) filter (where categories.kind = 'badput'), 0)
        end as wasted_cost,
        count(distinct scoped.run_key) as runs
    from marts.ledger_scoped_by_node as scoped
    inner join reference.gpu_second_categories as categories using (category)
    cross join (
        select greatest(scope_bucket_ms(), one_hour_ms()) as length_ms
    ) as sizes
    group by scoped.hour_ms // sizes.length_ms * sizes.length_ms
)

select
    from_ms(bucket_ms) as bucket_at,
    bucket_ms = scope_start(bucket_ms) and bucket_ms + length_ms = scope_end(bucket_ms + length_ms) as is_whole,
    capacity_ms,
    held_ms,
    unavailable_ms,
    useful_ms,
    wasted_ms,
    wasted_cost,
    goodput_ratio(useful_ms, capacity_ms) as goodput_ratio,
    allocation_ratio(held_ms, capacity_ms, unavailable_ms) as allocation_ratio,
    active_ratio(inactive_ms, unknown_ms, held_ms) as active_ratio,
    coverage_ratio(unknown_ms, busy_ms, held_ms) as coverage_ratio,
    runs,
    definition_version() as definition_version
from buckets
