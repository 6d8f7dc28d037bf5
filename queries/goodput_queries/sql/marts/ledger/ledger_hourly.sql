-- The ledger by hour: GPU-milliseconds by unit, hour, attempt, category and phase.
-- grain: gpu_uuid, gpu_instance, hour_ms, job_run_key, attempt_key, category, phase
select
    * exclude (start_ms, end_ms, first_ms, last_ms, gpu_ms, is_amount),
    sum(gpu_ms)::bigint as gpu_ms
from marts.ledger_pieces
group by all
having sum(gpu_ms) <> 0
