-- skip_if_empty: raw.comm_transports
-- gpu_ms: what the run's steps took longer than those of its attempts of the same size that used no sockets; else what
--  the expected bandwidth would save of its communication at most; nodes of one run share it; null: neither is known
with uses as (
    select ranks.attempt_key, bool_or(starts_with(used.transport, 'NET/Socket')) as is_fallback
    from staging.stg_comm_transports as used
    inner join intermediate.int_process_attempts as ranks using (cluster, node, pid)
    where starts_with(used.transport, 'NET/')
    group by ranks.attempt_key
),

speeds as (
    select
        steps.run_key,
        steps.gpus,
        uses.is_fallback,
        median(steps.compute_ms / coalesce(steps.tokens, steps.samples, 1)) as level_ms,
        sum(steps.compute_ms * steps.gpus) as gpu_ms
    from marts.timed_steps as steps
    inner join uses using (attempt_key)
    group by steps.run_key, steps.gpus, uses.is_fallback
),

slower as (
    select slow.run_key, sum(
            if(
                slow.level_ms >= fast.level_ms * (1 + threshold('step_change_min')),
                slow.gpu_ms * (1 - fast.level_ms / slow.level_ms),
                0
            )
        ) as gpu_ms
    from speeds as slow
    inner join speeds as fast using (run_key, gpus)
    where slow.is_fallback and not fast.is_fallback
    group by slow.run_key
),

measured as (
    select run_key, 1 - min(of_expected_ratio) as saved_ratio
    from marts.comm_bandwidth
    where is_slow and nodes > 1
    group by run_key
),

lost as (
    select
        spent.run_key,
        nullif(
            coalesce(
                any_value(slower.gpu_ms),
                sum(spent.gpu_ms) filter (where spent.category = 'exposed_comm') * any_value(measured.saved_ratio)
            ),
            0
        ) as gpu_ms,
        sum(spent.cost) / sum(spent.gpu_ms) as price_per_gpu_ms
    from marts.run_categories as spent
    left join slower using (run_key)
    left join measured using (run_key)
    group by spent.run_key
)

select
    transports.cluster,
    transports.node,
    transports.run_key,
    from_ms(scope_start(epoch_ms(clusters.first_at))) as start_at,
    from_ms(scope_end(epoch_ms(clusters.as_of_at))) as end_at,
    (lost.gpu_ms / count(*) over of_run)::bigint as gpu_ms,
    lost.gpu_ms / count(*) over of_run * lost.price_per_gpu_ms as cost,
    'Confirmed' as confidence,
    counted(transports.processes, 'process') || ' of NCCL use ' || transports.transport || ' between nodes' as evidence
from marts.transports as transports
inner join marts.clusters as clusters using (cluster)
left join lost using (run_key)
where
    transports.is_fallback
    and transports.has_infiniband
    and (
        sees_all_teams()
        or transports.run_key in (select run_key from intermediate.int_runs_of_one_team where of_teams(team))
    )
window of_run as (partition by transports.run_key)
