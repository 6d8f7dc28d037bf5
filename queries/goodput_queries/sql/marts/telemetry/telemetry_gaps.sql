-- Time in the scope's window in which no reading covers a GPU that is in the inventory: its series vanished. A reading
-- covers back to the one before it, at most 2.5 of the series' intervals.
-- grain: gpu_uuid, start_ms
-- start_ms, end_ms: epoch ms, cut at the window
-- sorted by a number: a name takes several times as long
with stays as materialized (
    select *, (row_number() over ())::integer as stay from intermediate.int_stays_in_scope
),

covered as (
    select stays.stay, activity.start_ms, activity.end_ms
    from stays
    inner join intermediate.int_gpu_activity as activity
        on stays.gpu_uuid = activity.gpu_uuid
        and activity.end_ms > stays.start_ms
        and activity.start_ms < stays.end_ms
    where
        activity.hour_ms > coalesce(getvariable('scope_from_ms')::bigint, 0) - 7200000
        and activity.hour_ms < coalesce(getvariable('scope_to_ms')::bigint, 9223372036854775807)
    union all
    select stay, start_ms, start_ms from stays
),

ends as (
    select
        *,
        max(end_ms) over (
            partition by stay order by start_ms, end_ms
            rows between unbounded preceding and current row
        ) as covered_ms,
        lead(start_ms) over (partition by stay order by start_ms, end_ms) as next_ms
    from covered
)

select
    stays.cluster,
    stays.node,
    stays.gpu_uuid,
    ends.covered_ms as start_ms,
    coalesce(ends.next_ms, stays.end_ms) as end_ms
from ends
inner join stays using (stay)
where coalesce(ends.next_ms, stays.end_ms) > ends.covered_ms
