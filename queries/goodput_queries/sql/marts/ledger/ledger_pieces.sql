-- The ledger in pieces that lie in one hour each: its segments, and of stretches of steps the amount of each category;
-- of time whose readings were dropped, the archive's hours. What sums over whole hours asks it.
-- grain: none (parts of an hour)
-- start_ms, end_ms: of the segment; in the archive those of its hour
-- first_ms, last_ms: first and last of the category in it
-- is_amount: the category is not the whole of [start_ms, end_ms), but gpu_ms of it
with segments as (
    select * exclude (gpu_ms)
    from intermediate.int_ledger_segments
    -- older ones are in the archive
    where hour_ms >= (select coalesce(max(kept_from_ms), 0) from state.kept_from where table_name = 'gpu_samples')
)

select * exclude (ms) from ledger_of('segments')
union all by name
select
    *,
    hour_ms as start_ms, hour_ms + one_hour_ms() as end_ms, hour_ms as first_ms, hour_ms + one_hour_ms() as last_ms,
    false as is_amount
from state.ledger_archive
