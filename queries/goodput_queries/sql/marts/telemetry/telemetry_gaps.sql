-- Time in the scope's window in which no reading covers a GPU that is in the inventory: its series vanished. A reading
-- covers back to the one before it, at most 2.5 of the series' intervals.
-- grain: gpu_uuid, start_ms
-- start_ms, end_ms: epoch ms, cut at the window
-- joined by a number: a name takes several times as long
with stays as materialized (
    select *, (row_number() over ())::integer as stay from intermediate.int_stays_in_scope
),

covered as materialized (
    select stays.stay, activity.start_ms, activity.end_ms
    from stays
    inner join intermediate.int_gpu_activity as activity
        on stays.gpu_uuid = activity.gpu_uuid
        and activity.end_ms > stays.start_ms
        and activity.start_ms < stays.end_ms
    where
        activity.hour_ms > scope_from_ms() - 7200000
        and activity.hour_ms < scope_to_ms()
    union all
    select stay, start_ms, start_ms from stays
),

-- most of what is covered ends where the next begins: few ends are left to be compared with all of their GPU
ends as (
    select distinct covered.stay, covered.end_ms
    from covered
    anti join covered as next
        on covered.stay = next.stay and covered.end_ms = next.start_ms and next.end_ms > next.start_ms
),

holes as (
    select
        ends.stay,
        ends.end_ms as start_ms,
        min(covered.start_ms) filter (where covered.start_ms > ends.end_ms) as next_ms
    from ends
    left join covered on ends.stay = covered.stay and covered.end_ms > ends.end_ms
    group by ends.stay, ends.end_ms
    having count(*) filter (where covered.start_ms < ends.end_ms) = 0
)

select
    stays.cluster,
    stays.node,
    stays.gpu_uuid,
    holes.start_ms,
    coalesce(holes.next_ms, stays.end_ms) as end_ms
from holes
inner join stays using (stay)
where coalesce(holes.next_ms, stays.end_ms) > holes.start_ms
