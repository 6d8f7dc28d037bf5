-- Differences between the scheduler's allocated time and the statement's, by reason: the rows of a cluster add up to
-- scheduler - statement, to the millisecond. Scope: window and cluster.
-- grain: cluster, reason
-- evaluated: first
-- gpu_ms: scheduler's less statement's; the scheduler counts each allocated GPU or MIG instance as 1
-- holds that are inferred without a scheduler have a line of their own
with owned as (
    select * from intermediate.int_job_runs where ownership in ('scheduler', 'label')
),

scheduled as (
    select
        runs.cluster,
        runs.job_run_key,
        runs.is_inferred,
        len(runs.nodes) = 0 as is_nowhere,
        case when runs.is_inferred then 0 else runs.gpus end * (least(coalesce(runs.end_ms, window_.to_ms), window_.to_ms)
            - greatest(runs.start_ms, window_.from_ms)) as gpu_ms
    from owned as runs
    inner join intermediate.int_cluster_windows as window_ using (cluster)
    where
        runs.gpus > 0
        and runs.start_ms < window_.to_ms
        and coalesce(runs.end_ms, window_.to_ms) > window_.from_ms
),

placed as (
    select
        holds.cluster,
        holds.job_run_key,
        holds.gpu_uuid,
        holds.gpu_instance,
        greatest(holds.start_ms, window_.from_ms) as start_ms,
        least(coalesce(holds.end_ms, window_.to_ms), window_.to_ms) as end_ms
    from intermediate.int_holds as holds
    semi join owned using (job_run_key)
    inner join intermediate.int_cluster_windows as window_ using (cluster)
    where holds.start_ms < window_.to_ms and coalesce(holds.end_ms, window_.to_ms) > window_.from_ms
),

-- the part of each hold that lies in the inventory, and what its share of the GPU makes of it
inside as (
    select
        placed.cluster,
        placed.job_run_key,
        sum(least(placed.end_ms, coalesce(units.end_ms, placed.end_ms)) - greatest(placed.start_ms, units.start_ms))
            as whole_ms,
        sum(share_ms(
            greatest(placed.start_ms, units.start_ms), least(placed.end_ms, coalesce(units.end_ms, placed.end_ms)),
            units.share_lo, units.share_hi, units.share_of
        )) as gpu_ms
    from placed
    inner join intermediate.int_gpu_units as units
        on placed.gpu_uuid = units.gpu_uuid
        and placed.gpu_instance = units.gpu_instance
        and units.start_ms < placed.end_ms
        and coalesce(units.end_ms, placed.end_ms) > placed.start_ms
    group by all
),

contested as (
    select
        conflicts.cluster,
        conflicts.job_run_key,
        sum(least(coalesce(conflicts.end_ms, window_.to_ms), window_.to_ms)
            - greatest(conflicts.start_ms, window_.from_ms)) as gpu_ms
    from intermediate.int_hold_conflicts as conflicts
    semi join owned using (job_run_key)
    inner join intermediate.int_cluster_windows as window_ using (cluster)
    where conflicts.start_ms < window_.to_ms and coalesce(conflicts.end_ms, window_.to_ms) > window_.from_ms
    group by all
),

charged as (
    select cluster, job_run_key, sum(gpu_ms) as gpu_ms
    from marts.ledger_scoped_by_node
    semi join owned using (job_run_key)
    group by all
),

job_runs as (
    select
        cluster,
        job_run_key,
        coalesce(scheduled.is_nowhere, false) as is_nowhere,
        coalesce(scheduled.is_inferred, false) as is_inferred,
        coalesce(scheduled.gpu_ms, 0) as scheduled_ms,
        coalesce(sums.placed_ms, 0) as placed_ms,
        coalesce(inside.whole_ms, 0) as whole_ms,
        coalesce(inside.gpu_ms, 0) as inside_ms,
        coalesce(contested.gpu_ms, 0) as contested_ms,
        coalesce(charged.gpu_ms, 0) as charged_ms
    from scheduled
    full join (
        select cluster, job_run_key, sum(end_ms - start_ms) as placed_ms from placed group by all
    ) as sums using (cluster, job_run_key)
    full join inside using (cluster, job_run_key)
    full join contested using (cluster, job_run_key)
    full join charged using (cluster, job_run_key)
),

reasons as (
    select cluster, job_run_key, 'taken over by a later job run' as reason, contested_ms as gpu_ms from job_runs
    union all
    select cluster, job_run_key, 'MIG instances count by their slices', whole_ms - inside_ms from job_runs
    union all
    select cluster, job_run_key, 'outside of the inventory''s dates', placed_ms - whole_ms from job_runs
    union all
    select
        cluster, job_run_key,
        case
            when is_inferred then 'known from labels of telemetry alone'
            when is_nowhere then 'the accounting names no node'
            else 'no such GPU was free on the named nodes'
        end,
        scheduled_ms - placed_ms - contested_ms
    from job_runs
    union all
    select cluster, job_run_key, 'not explained', inside_ms - charged_ms from job_runs
)

select cluster, reason, count(*) filter (where gpu_ms <> 0) as job_runs, sum(gpu_ms)::bigint as gpu_ms
from reasons
group by cluster, reason
having bool_or(gpu_ms <> 0)
