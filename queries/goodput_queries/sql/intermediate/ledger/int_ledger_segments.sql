-- The ledger: every GPU (or MIG instance) is in exactly one segment at any time; run-length encoded and split at
-- hours. Its gpu_ms add up to the capacity, to the millisecond. A stretch of steps is one segment, whatever their number:
-- its categories are amounts (ledger_of in macros/amounts.sql), which every reader of categories asks for.
-- grain: gpu_uuid, gpu_instance, start_ms
-- hour_ms: start of the hour the segment lies in, epoch ms
-- gpu_ms: milliseconds of a whole GPU; a part of a GPU counts with its share
-- share_lo, share_hi, share_of: the part of the GPU, for cutting a segment again
-- category: reference.gpu_second_categories; stepping: a stretch, whose categories are amounts
-- phase: detail within the category; what it would have been, where the whole attempt failed
-- job_run_key, attempt_key: null where the GPU was not allocated, or the job sent no events
-- materialised: hourly of the ledger, since every page and export reads it and closed hours do not change
with marked as (
    select
        *,
        start_ms // one_hour_ms() * one_hour_ms() as hour_ms,
        (unit, hold, piece, category, coalesce(phase, ''), start_ms // one_hour_ms()) is distinct from lag(
            (unit, hold, piece, category, coalesce(phase, ''), start_ms // one_hour_ms())
        ) over (order by unit, start_ms) as is_new
    from temp.intervals_classified
),

followed as (
    select
        *,
        lead(unit) over in_order as next_unit,
        lead(start_ms) over in_order as next_ms
    from marked
    where is_new
    -- one order of all is cheaper than one of each of many units
    window in_order as (order by unit, start_ms)
),

-- what is known of a unit has no holes, so that a segment lasts until the next one begins
segments as (
    select
        followed.*,
        case
            when followed.next_unit = followed.unit then followed.next_ms
            else least(units.end_ms, build_to_ms())
        end as end_ms
    from followed
    inner join temp.units as units using (unit)
)

select
    units.cluster,
    units.node,
    units.gpu_uuid,
    units.gpu_instance,
    units.gpu_model,
    units.mig_profile,
    holds.job_run_key,
    pieces.attempt_key,
    segments.category,
    segments.phase,
    segments.hour_ms,
    segments.start_ms,
    segments.end_ms,
    units.share_lo,
    units.share_hi,
    units.share_of,
    share_ms(segments.start_ms, segments.end_ms, units.share_lo, units.share_hi, units.share_of) as gpu_ms
from segments
inner join temp.units as units using (unit)
-- the last: names make rows wide, which are sorted before
left join (select distinct hold, job_run_key from temp.holds) as holds using (hold)
left join (select distinct piece, attempt_key from temp.pieces) as pieces using (piece)
