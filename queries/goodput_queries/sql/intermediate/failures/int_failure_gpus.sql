-- GPUs of the failed attempts of the scope.
-- grain: attempt_key, node, gpu_uuid
-- evaluated: first
-- skip_if_empty: intermediate.int_failed_attempts_in_scope
select
    attempts.attempt_key,
    attempts.trouble_from_ms,
    attempts.trouble_until_ms,
    attempts.end_ms,
    holds.cluster,
    holds.node,
    holds.gpu_uuid,
    any_value(gpus.gpu_index) as gpu_index,
    any_value(gpus.pci_bus_id) as pci_bus_id
from intermediate.int_failed_attempts_in_scope as attempts
inner join intermediate.int_holds as holds
    on attempts.job_run_key = holds.job_run_key
    and holds.start_ms < attempts.end_ms
    and coalesce(holds.end_ms, forever_ms()) > attempts.start_ms
left join intermediate.int_gpu_inventory as gpus on holds.gpu_uuid = gpus.gpu_uuid and holds.node = gpus.node
group by all
