-- The segments of the ledger, and of time whose readings were dropped the archive's hours, cut at the window and into
-- bins of the scope's bucket_ms. Owners do not restrict it.
-- grain: none (parts of segments)
-- bin_ms: start of the bin, epoch ms; start_ms, end_ms: of the part in it
-- share_lo, share_hi, share_of: null in the archive, which has sums of hours
-- gpu_ms: milliseconds of a whole GPU
with pieces as (
    from intermediate.int_segments_in_window
)

select
    * exclude (share_ratio),
    coalesce(
        share_ms(start_ms, end_ms, share_lo, share_hi, share_of), share_ratio * (end_ms - start_ms)
    ) as gpu_ms
from segment_bins('pieces')
