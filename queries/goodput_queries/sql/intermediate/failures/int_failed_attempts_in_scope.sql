-- Attempts of the scope that ended badly in its window, with what the job said and what their failure cost.
-- grain: attempt_key
-- evaluated: first
-- said_kind, said_msg, said_ms: first failure that the job reported; a log may be read out after the end
-- lost_gpu_ms, lost_cost: lost work, fault stall and time without progress, in the window; cost: null where the rate card
--  has no price
with lost as (
    select attempt_key, sum(gpu_ms)::bigint as gpu_ms, sum(cost) as cost
    from marts.ledger_scoped_by_node
    where category in ('lost_work', 'fault_stall', 'failed_without_progress')
    group by attempt_key
)

select
    attempts.*,
    said.kind as said_kind,
    said.msg as said_msg,
    least(said.at_ms, attempts.end_ms) as said_ms,
    coalesce(lost.gpu_ms, 0) as lost_gpu_ms,
    lost.cost as lost_cost
from intermediate.int_failed_attempts as attempts
left join intermediate.int_reported_failures as said using (attempt_key)
left join lost using (attempt_key)
where
    in_window(attempts.end_ms - 1, attempts.end_ms)
    and in_cluster(attempts.cluster)
    and of_owner(attempts.team, attempts.user_name, attempts.run_key, attempts.partition)
    and (
        (chosen_node() is null and chosen_gpu_uuid() is null and chosen_gpu_model() is null)
        or attempts.job_run_key in (
            select holds.job_run_key
            from intermediate.int_holds as holds
            inner join intermediate.int_gpu_inventory as gpus using (gpu_uuid)
            where in_place(gpus.cluster, gpus.node, gpus.gpu_uuid, gpus.gpu_model)
        )
    )
