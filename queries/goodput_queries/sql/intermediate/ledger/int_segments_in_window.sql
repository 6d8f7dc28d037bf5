-- The segments of the ledger in the scope's place, and of time whose readings were dropped the archive's hours, cut at the
-- window. Owners do not restrict it.
-- grain: none (parts of segments)
-- start_ms, end_ms: of the part in the window
-- share_lo, share_hi, share_of: null in the archive, which has sums of hours
with pieces as (
    select *
    from intermediate.int_ledger_segments
    where hour_ms >= (select coalesce(max(kept_from_ms), 0) from state.kept_from where table_name = 'gpu_samples')
    union all by name
    select
        * exclude (gpu_ms),
        gpu_ms / one_hour_ms() as share_ratio,
        hour_ms as start_ms,
        hour_ms + one_hour_ms() as end_ms
    from state.ledger_archive
)

select * exclude (gpu_ms) replace (scope_start(start_ms) as start_ms, scope_end(end_ms) as end_ms)
from pieces
where
    hour_ms > scope_from_ms() - one_hour_ms()
    and hour_ms < scope_to_ms()
    and in_window(start_ms, end_ms)
    and in_place(cluster, node, gpu_uuid, gpu_model)
