-- The ledger of the scope's window by GPU; where a run is chosen, of that run alone. Whole hours come from segments
-- with amounts, and the archive; in hours that it cuts, stretches are counted step by step where it cuts ten minutes.
-- grain: none (parts of hours)
-- start_ms, end_ms: first and last of it in the hour; from_ms, until_ms: of the segment or stretch that it is in
-- is_amount: it is not the whole of [from_ms, until_ms), but gpu_ms of it
with segments as (
    select * exclude (gpu_ms)
    from intermediate.int_ledger_segments
    where
        hour_ms >= (select coalesce(max(kept_from_ms), 0) from state.kept_from where table_name = 'gpu_samples')
        and is_whole_hour(hour_ms)
        -- of one run a few: the amounts of all others need not be computed
        and (
            chosen_run() is null
            or job_run_key in (select job_run_key from intermediate.int_job_run_owners where run_key = chosen_run())
        )
)

select
    cluster, node, gpu_uuid, gpu_instance, gpu_model, mig_profile, job_run_key, attempt_key,
    category, phase, hour_ms, first_ms as start_ms, last_ms as end_ms, gpu_ms,
    start_ms as from_ms, end_ms as until_ms, is_amount
from ledger_of('segments')
union all by name
select
    *, hour_ms as start_ms, hour_ms + one_hour_ms() as end_ms,
    start_ms as from_ms, end_ms as until_ms, false as is_amount
from state.ledger_archive
where is_whole_hour(hour_ms)
union all by name
from intermediate.int_cut_hours
