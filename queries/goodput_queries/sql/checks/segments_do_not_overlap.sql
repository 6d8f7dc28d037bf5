-- Segments of a unit that begin before the one before them ended, or that end before they begin.
-- grain: gpu_uuid, gpu_instance, start_ms
with ordered as (
    select
        gpu_uuid,
        gpu_instance,
        start_ms,
        end_ms,
        gpu_ms,
        lag(end_ms) over (partition by gpu_uuid, gpu_instance order by start_ms) as previous_end_ms
    from intermediate.int_ledger_segments
)

select * from ordered where start_ms < previous_end_ms or end_ms <= start_ms or gpu_ms < 0
