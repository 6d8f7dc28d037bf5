-- What the hourly ledger by node does not say of the scope's place: the hours that the window cuts, and where a GPU is
-- chosen all that it did. Evaluated first, so that what sums nodes is not planned with the ledger by GPU each time.
-- grain: none (parts of hours)
-- evaluated: first
-- start_ms, end_ms, from_ms, until_ms, is_amount: as in marts.ledger_scoped_by_node
-- gpu_ms: milliseconds of a whole GPU
select
    cluster, node, gpu_model, mig_profile, job_run_key, attempt_key, category, phase, hour_ms,
    min(start_ms) as start_ms, max(end_ms) as end_ms, sum(gpu_ms)::bigint as gpu_ms,
    min(start_ms) as from_ms, max(end_ms) as until_ms, null::boolean as is_amount
from intermediate.int_cut_hours
where chosen_gpu_uuid() is null
group by all
having sum(gpu_ms) <> 0
union all
select * exclude (gpu_uuid, gpu_instance)
from intermediate.int_gpu_hours
where chosen_gpu_uuid() is not null and in_place(cluster, node, gpu_uuid, gpu_model)
