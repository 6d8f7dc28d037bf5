-- Acts of the scope's window on nodes and jobs, by people, schedulers, controllers or the job itself: what waited before them,
-- what they cost, what they saved against leaving it, and whether the same cause came again. Losses are those of
-- marts.loss_parts and marts.repairs.
-- grain: cluster, kind, node, run_key, attempt, start_at
-- evaluated: first
-- access: team
-- kind: repair (a fault of the node is known) or drain of a node; preemption, requeue (the same job in another job run) or
--  restart (in its job, or as another one) of a job
-- node: of a job the one that evidence names for its failure; run_key, attempt, job_name, team: of the attempt that ended
-- cause: first sign of a fault, else the reason of the states; of a job the failure reason; null: not known
-- start_at: when the node went out of service, or the attempt ended; acted_at: when somebody acted; null: nobody did
-- actor: scheduler, controller (health check, operator program, Kueue, controllers of Kubernetes), person, job (its launcher,
--  or by its own request), nobody; null: not known; acted_by: the name
-- back_at: return to service, or start of the next attempt; null: not yet
-- queue_s: from the end, or since the next job run was eligible, to the next start; 0: in the same allocation; null: none
-- untouched_ms, untouched_cost: lost before anybody acted: the node down, the job in a fault stall
-- lost_ms: of act_ms, work since the last save
-- act_ms, act_cost: GPU time of the act: repair; lost work and the start-up and restore that it made necessary; null: the
--  job reports no steps; costs are null where the rate card has no price
-- saved_low_ms, saved_high_ms: of an act on a node, what jobs lost by it per hour in the week before, for as long as it was
--  out: its failures by their exact 95 % Poisson interval, late, throttled and faulty ranks as measured; saved_evidence: the
--  numbers; null: no job that reports steps ran on it; high alone: the loss of a failure is not known
-- verdict: same cause again (within a day), no progress (it failed again of another cause, or the node within a week), not
--  back, no failure since
with losses as materialized (
    select
        cluster, node, case_key, rule in ('throttled_gpu', 'faulty_gpu', 'slow_rank') as is_slow,
        min(first_ms) as first_ms, max(last_ms) as last_ms, sum(gpu_ms)::bigint as gpu_ms, sum(cost) as cost
    from marts.loss_parts
    where is_slow or rule in ('hang', 'preempted', 'infrastructure_failure', 'time_limit', 'job_failure')
    group by all
),

endings as (
    select case_key as attempt_key, sum(gpu_ms)::bigint as gpu_ms, sum(cost) as cost
    from losses
    where not is_slow
    group by case_key
),

-- what evidence puts on a node, in the rows that the reader may see
failures as materialized (
    select
        culprits.cluster, culprits.node, attempts.end_ms, causes.cause, causes.class,
        case when attempts.has_events then coalesce(endings.gpu_ms, 0) else endings.gpu_ms end * culprits.share as gpu_ms
    from marts.failure_nodes as culprits
    inner join intermediate.int_attempts as attempts using (attempt_key)
    inner join intermediate.int_attempt_causes as causes using (attempt_key)
    left join endings using (attempt_key)
    where of_teams(attempts.team)
),

outages as (
    select
        repairs.*,
        coalesce(sign, reason) as cause,
        epoch_ms(start_at) as start_ms,
        scope_end(coalesce(epoch_ms(end_at), greatest(clusters.as_of_ms, epoch_ms(start_at)))) as until_ms,
        greatest(
            scope_start(clusters.first_ms), epoch_ms(start_at) - threshold('repair_trial_ms'),
            coalesce(epoch_ms(lag(end_at) over by_node), 0)
        ) as before_ms,
        lead(start_at) over by_node < end_at + to_milliseconds(threshold('same_cause_ms')::bigint)
        and lead(coalesce(sign, reason)) over by_node = coalesce(sign, reason) as is_out_again
    from marts.repairs as repairs
    inner join intermediate.int_clusters as clusters using (cluster)
    window by_node as (partition by repairs.cluster, repairs.node order by repairs.start_at)
),

measured as (
    select distinct outages.cluster, outages.node, outages.start_ms
    from outages
    inner join marts.ledger_scoped_by_node as ledger
        on outages.cluster = ledger.cluster and outages.node = ledger.node
        and ledger.start_ms < outages.start_ms and ledger.end_ms > outages.before_ms
    inner join intermediate.int_attempts as attempts using (attempt_key)
    where attempts.has_events
),

failed as (
    select
        outages.cluster, outages.node, outages.start_ms,
        count(*) filter (where not is_after) as failures,
        count(*) filter (where not is_after and gpu_ms is null) as unmeasured,
        coalesce(sum(gpu_ms) filter (where not is_after), 0) as gpu_ms,
        bool_or(
            is_after and end_ms <= until_ms + threshold('same_cause_ms')
            and (failures.cause = sign or sign = 'node down' and class = 'node')
        ) as is_again
    from outages
    inner join failures using (cluster, node)
    cross join lateral (select end_ms > coalesce(epoch_ms(acted_at), start_ms) + threshold('failure_late_ms') as is_after)
    where end_ms > before_ms and (not is_after or end_ms > until_ms)
    group by all
),

slow as (
    select
        outages.cluster, outages.node, outages.start_ms,
        sum(gpu_ms * overlap_ms(first_ms, last_ms, before_ms, start_ms) / (last_ms - first_ms)) as gpu_ms
    from outages
    inner join losses using (cluster, node)
    where is_slow and first_ms < start_ms and last_ms > before_ms
    group by all
),

on_nodes as (
    select
        outages.*,
        coalesce(failed.is_again, false) or coalesce(is_out_again, false) as is_again,
        coalesce(failed.failures, 0) as failures, coalesce(failed.unmeasured, 0) as unmeasured,
        coalesce(failed.gpu_ms, 0) as failed_ms, coalesce(slow.gpu_ms, 0) as slow_ms,
        case when measured.node is not null and acted_at is not null and start_ms > before_ms
            then greatest(0, until_ms - scope_start(epoch_ms(acted_at))) / (start_ms - before_ms)
        end as out_ratio
    from outages
    left join measured using (cluster, node, start_ms)
    left join failed using (cluster, node, start_ms)
    left join slow using (cluster, node, start_ms)
),

-- an eviction ends the pods of the job within their grace period
evictions as (
    select attempt_key, max(queued.since_ms) as at_ms, max_by(queued.eviction_reason, queued.since_ms) as reason
    from intermediate.int_failed_attempts_in_scope as attempts
    inner join intermediate.int_job_runs as runs using (job_run_key)
    inner join staging.stg_queue_entries as queued
        on runs.cluster = queued.cluster and runs.job_id_raw = queued.job_id_raw
        and abs(attempts.end_ms - queued.since_ms) <= threshold('failure_reach_ms')
    where queued.eviction_reason is not null and attempts.is_last_of_job_run
    group by attempt_key
),

stalls as (
    select
        attempt_key,
        coalesce(sum(gpu_ms) filter (where category = 'fault_stall'), 0)::bigint as stall_ms,
        sum(cost) filter (where category = 'fault_stall') as stall_cost,
        coalesce(sum(gpu_ms) filter (where category <> 'fault_stall'), 0)::bigint as lost_ms
    from marts.ledger_scoped_by_node
    where category in ('lost_work', 'fault_stall', 'failed_without_progress')
    group by attempt_key
),

ended as (
    select
        attempts.*,
        causes.cause, causes.is_platform, evictions.at_ms as evicted_ms, evictions.reason as eviction_reason,
        later.start_ms as next_ms, later.submit_ms as next_submit_ms, later.user_name as next_user,
        later.job_run_key is not null as is_back,
        later.job_run_key = attempts.job_run_key as is_in_allocation,
        later.job_id = attempts.job_id as is_same_job,
        later.job_id <> attempts.job_id and later.submit_ms > attempts.end_ms as is_submitted,
        case
            when is_in_allocation then 0
            when is_back then greatest(0, later.start_ms - greatest(later.eligible_ms, attempts.end_ms))
        end / 1000.0 as queue_s,
        contains(attempts.job_id, '/') as is_of_kubernetes,
        attempts.is_last_of_job_run and attempts.state = 'REQUEUED' as is_requeued,
        coalesce(stalls.stall_ms, 0) as untouched_ms,
        case when untouched_ms = 0 then 0 else stalls.stall_cost end as untouched_cost,
        case when attempts.has_events then coalesce(stalls.lost_ms, 0) else stalls.lost_ms end as lost_ms,
        case when attempts.has_events then coalesce(endings.gpu_ms, 0) else endings.gpu_ms end - untouched_ms as act_ms,
        case when attempts.has_events and endings.gpu_ms is null then 0 else endings.cost end - untouched_cost as act_cost
    from intermediate.int_failed_attempts_in_scope as attempts
    left join intermediate.int_attempt_causes as causes using (attempt_key)
    left join intermediate.int_attempts as later
        on attempts.run_key = later.run_key and attempts.attempt + 1 = later.attempt and of_teams(later.team)
    left join evictions using (attempt_key)
    left join stalls using (attempt_key)
    left join endings using (attempt_key)
    where is_back or evicted_ms is not null or attempts.is_last_of_job_run and attempts.state in ('PREEMPTED', 'REQUEUED')
),

-- what failed within a day after it in the same run
repeats as (
    select ended.attempt_key, bool_or(causes.cause = ended.cause) as is_same
    from ended
    inner join intermediate.int_failed_attempts as later
        on ended.run_key = later.run_key and ended.attempt < later.attempt and later.outcome = 'failed'
        and later.end_ms <= ended.end_ms + threshold('same_cause_ms')
    inner join intermediate.int_attempt_causes as causes on later.attempt_key = causes.attempt_key
    where of_teams(later.team)
    group by ended.attempt_key
)

select
    cluster,
    case when broken_at is null then 'drain' else 'repair' end as kind,
    node, null::varchar as run_key, null::bigint as attempt, null::varchar as job_name, null::varchar as team, cause,
    start_at, acted_at, case when acted_at is null then 'nobody' else actor end as actor, acted_by,
    end_at as back_at, null::double as queue_s,
    untouched_ms, untouched_cost, null::bigint as lost_ms, repair_ms as act_ms, repair_cost as act_cost,
    -- the loss of a failure times how many there may have been
    round((coalesce(poisson_low(failures) * failed_ms / nullif(failures, 0), 0) + slow_ms) * out_ratio)::bigint as saved_low_ms,
    case when unmeasured = 0
        then round((coalesce(poisson_high(failures) * failed_ms / nullif(failures, 0), 0) + slow_ms) * out_ratio)
    end::bigint as saved_high_ms,
    case when out_ratio is not null then printf(
        '%s (%.1f GPU-h) and %.1f GPU-h by late, throttled or faulty ranks in the %.1f h before',
        counted(failures, 'failure'), failed_ms / one_hour_ms(), slow_ms / one_hour_ms(), (start_ms - before_ms) / one_hour_ms()
    ) || case when unmeasured > 0 then '; the loss of ' || unmeasured || ' is not known' else '' end end as saved_evidence,
    case when acted_at is not null and end_at is not null and is_again then 'same cause again' else verdict end as verdict
from on_nodes
union all by name
select
    ended.cluster,
    case
        when cause in ('PREEMPTED', 'preempted') or starts_with(eviction_reason, 'Preempted') then 'preemption'
        when evicted_ms is not null or is_requeued or is_same_job and not is_in_allocation then 'requeue'
        else 'restart'
    end as kind,
    culprits.node, run_key, attempt, job_name, team,
    coalesce(split_part(eviction_reason, ':', 1), cause) as cause,
    from_ms(end_ms) as start_at,
    from_ms(coalesce(evicted_ms, case when is_submitted then next_submit_ms end, end_ms)) as acted_at,
    case
        when evicted_ms is not null then 'controller'
        when cause = 'PREEMPTED' then 'scheduler'
        when cause = 'requeued by the job' then 'job'
        when is_in_allocation then case when not is_of_kubernetes then 'job' end
        when is_of_kubernetes then case when is_same_job then 'controller' end
        -- people and jobs requeue with the same state
        when is_requeued then case when is_platform then 'scheduler' end
        when not is_submitted then 'scheduler'
        when next_user is not null then 'person'
    end as actor,
    case when evicted_ms is not null then 'Kueue' when is_submitted then next_user end as acted_by,
    from_ms(next_ms) as back_at,
    columns(['queue_s', 'untouched_ms', 'untouched_cost', 'lost_ms', 'act_ms', 'act_cost']),
    case
        when repeats.is_same then 'same cause again'
        when not is_back then 'not back'
        when repeats.is_same is not null then 'no progress'
        else 'no failure since'
    end as verdict
from ended
left join repeats using (attempt_key)
left join marts.failure_nodes as culprits on ended.attempt_key = culprits.attempt_key and culprits.place = 1
