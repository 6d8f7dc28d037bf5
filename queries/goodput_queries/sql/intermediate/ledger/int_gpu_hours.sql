-- The ledger of the scope's window by GPU. Whole hours come from the ledger's pieces, hours that the window cuts from the
-- segments, whose stretches of steps are counted step by step where it cuts ten minutes.
-- grain: none (parts of hours)
-- start_ms, end_ms: first and last of it in the hour; from_ms, until_ms: of the segment or stretch that it is in
-- is_amount: it is not the whole of [from_ms, until_ms), but gpu_ms of it
select
    cluster, node, gpu_uuid, gpu_instance, gpu_model, mig_profile, job_run_key, attempt_key,
    category, phase, hour_ms, first_ms as start_ms, last_ms as end_ms, gpu_ms,
    start_ms as from_ms, end_ms as until_ms, is_amount
from marts.ledger_pieces
where is_whole_hour(hour_ms)
union all
from intermediate.int_cut_hours
