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
        rule,
        cluster,
        node,
        case_key,
        min(first_ms) as first_ms,
        max(last_ms) as last_ms,
        sum(gpu_ms)::bigint as gpu_ms,
        sum(cost) as cost
    from marts.loss_parts
    where
        rule in (
            'hang', 'preempted', 'infrastructure_failure', 'time_limit', 'job_failure', 'throttled_gpu', 'faulty_gpu', 'slow_rank'
        )
    group by rule, cluster, node, case_key
),

of_endings as (
    select case_key as attempt_key, sum(gpu_ms)::bigint as gpu_ms, sum(cost) as cost
    from losses
    where rule not in ('throttled_gpu', 'faulty_gpu', 'slow_rank')
    group by case_key
),

by_attempt as (
    select
        attempt_key,
        coalesce(sum(gpu_ms) filter (where category = 'fault_stall'), 0)::bigint as stall_ms,
        sum(cost) filter (where category = 'fault_stall') as stall_cost,
        coalesce(sum(gpu_ms) filter (where category <> 'fault_stall'), 0)::bigint as lost_ms
    from marts.ledger_scoped_by_node
    where category in ('lost_work', 'fault_stall', 'failed_without_progress')
    group by attempt_key
),

-- what evidence puts on a node, in the rows that the reader may see
failures as materialized (
    select
        culprits.cluster,
        culprits.node,
        attempts.end_ms,
        causes.cause,
        causes.class,
        case when attempts.has_events then coalesce(of_endings.gpu_ms, 0) else of_endings.gpu_ms end * culprits.share as gpu_ms
    from marts.failure_nodes as culprits
    inner join intermediate.int_attempts as attempts using (attempt_key)
    inner join intermediate.int_attempt_causes as causes using (attempt_key)
    left join of_endings using (attempt_key)
    where of_teams(attempts.team)
),

outages as (
    select
        repairs.* exclude (sign, reason),
        sign,
        coalesce(sign, reason) as cause,
        epoch_ms(start_at) as start_ms,
        scope_end(coalesce(epoch_ms(end_at), greatest(clusters.as_of_ms, epoch_ms(start_at)))) as until_ms,
        greatest(
            scope_start(clusters.first_ms),
            epoch_ms(start_at) - threshold('repair_trial_ms'),
            coalesce(epoch_ms(lag(end_at) over by_node), 0)
        ) as before_ms,
        lead(start_at) over by_node < end_at + to_milliseconds(threshold('same_cause_ms')::bigint)
        and lead(coalesce(sign, reason)) over by_node = coalesce(sign, reason) as is_out_again
    from marts.repairs as repairs
    inner join intermediate.int_clusters as clusters using (cluster)
    window by_node as (partition by repairs.cluster, repairs.node order by repairs.start_at)
),

failed_before as (
    select
        outages.cluster,
        outages.node,
        outages.start_ms,
        count(*) filter (where failures.end_ms <= outages.until_ms) as failures,
        count(*) filter (where failures.end_ms <= outages.until_ms and failures.gpu_ms is null) as unmeasured,
        sum(failures.gpu_ms) filter (where failures.end_ms <= outages.until_ms) as gpu_ms,
        bool_or(
            failures.end_ms > outages.until_ms
            and (failures.cause = outages.sign or outages.sign = 'node down' and failures.class = 'node')
        ) as is_again
    from outages
    inner join failures
        on outages.cluster = failures.cluster and outages.node = failures.node and failures.end_ms > outages.before_ms
        and (
            failures.end_ms <= coalesce(epoch_ms(outages.acted_at), outages.start_ms) + threshold('failure_late_ms')
            or failures.end_ms > outages.until_ms and failures.end_ms <= outages.until_ms + threshold('same_cause_ms')
        )
    group by outages.cluster, outages.node, outages.start_ms
),

slow_before as (
    select
        outages.cluster,
        outages.node,
        outages.start_ms,
        sum(
            losses.gpu_ms * overlap_ms(losses.first_ms, losses.last_ms, outages.before_ms, outages.start_ms)
            / (losses.last_ms - losses.first_ms)
        ) as gpu_ms
    from outages
    inner join losses
        on outages.cluster = losses.cluster and outages.node = losses.node
        and losses.first_ms < outages.start_ms and losses.last_ms > outages.before_ms
    where losses.rule in ('throttled_gpu', 'faulty_gpu', 'slow_rank')
    group by outages.cluster, outages.node, outages.start_ms
),

measured_before as (
    select distinct outages.cluster, outages.node, outages.start_ms
    from outages
    inner join marts.ledger_scoped_by_node as ledger
        on outages.cluster = ledger.cluster and outages.node = ledger.node
        and ledger.start_ms < outages.start_ms and ledger.end_ms > outages.before_ms
    inner join intermediate.int_attempts as attempts using (attempt_key)
    where attempts.has_events
),

rates as (
    select
        outages.*,
        coalesce(failed.failures, 0) as failures,
        coalesce(failed.unmeasured, 0) as unmeasured,
        coalesce(failed.gpu_ms, 0) as failed_ms,
        coalesce(failed.is_again, false) as is_again,
        coalesce(slow.gpu_ms, 0) as slow_ms,
        (outages.start_ms - outages.before_ms) / one_hour_ms() as before_h,
        case
            when outages.acted_at is not null and outages.start_ms > outages.before_ms
                then greatest(0, outages.until_ms - scope_start(epoch_ms(outages.acted_at))) / (outages.start_ms - outages.before_ms)
        end as out_ratio
    from outages
    inner join measured_before using (cluster, node, start_ms)
    left join failed_before as failed using (cluster, node, start_ms)
    left join slow_before as slow using (cluster, node, start_ms)
),

-- an eviction ends the pods of the job within their grace period
evictions as (
    select
        attempts.attempt_key,
        max(queued.since_ms) as at_ms,
        max_by(queued.eviction_reason, queued.since_ms) as reason
    from intermediate.int_failed_attempts_in_scope as attempts
    inner join intermediate.int_job_runs as runs using (job_run_key)
    inner join staging.stg_queue_entries as queued
        on runs.cluster = queued.cluster and runs.job_id_raw = queued.job_id_raw
        and abs(attempts.end_ms - queued.since_ms) <= threshold('failure_reach_ms')
    where queued.eviction_reason is not null and attempts.is_last_of_job_run
    group by attempts.attempt_key
),

ended as (
    select
        attempts.*,
        causes.cause,
        evictions.at_ms as evicted_ms,
        evictions.reason as eviction_reason,
        later.attempt_key is not null as is_back,
        later.start_ms as next_ms,
        later.submit_ms as next_submit_ms,
        case
            when later.job_run_key <> attempts.job_run_key then greatest(0, later.start_ms - greatest(later.eligible_ms, attempts.end_ms))
            when later.attempt_key is not null then 0
        end as queue_ms,
        later.user_name as next_user,
        coalesce(causes.is_platform, false) as is_platform,
        coalesce(later.job_run_key = attempts.job_run_key, false) as is_in_allocation,
        coalesce(later.job_id = attempts.job_id, false) as is_same_job,
        contains(attempts.job_id, '/') as is_of_kubernetes,
        attempts.is_last_of_job_run and attempts.state = 'REQUEUED' as is_requeued
    from intermediate.int_failed_attempts_in_scope as attempts
    left join intermediate.int_attempt_causes as causes using (attempt_key)
    left join intermediate.int_attempts as later
        on attempts.run_key = later.run_key and attempts.attempt + 1 = later.attempt and of_teams(later.team)
    left join evictions using (attempt_key)
    where
        later.attempt_key is not null or evictions.attempt_key is not null
        or attempts.is_last_of_job_run and attempts.state in ('PREEMPTED', 'REQUEUED')
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
    outages.cluster,
    case when outages.broken_at is null then 'drain' else 'repair' end as kind,
    outages.node,
    null::varchar as run_key,
    null::bigint as attempt,
    null::varchar as job_name,
    null::varchar as team,
    outages.cause,
    outages.start_at,
    outages.acted_at,
    case when outages.acted_at is null then 'nobody' else outages.actor end as actor,
    outages.acted_by,
    outages.end_at as back_at,
    null::double as queue_s,
    outages.untouched_ms,
    outages.untouched_cost,
    null::bigint as lost_ms,
    outages.repair_ms as act_ms,
    outages.repair_cost as act_cost,
    round((poisson_low(rates.failures) * coalesce(rates.failed_ms / nullif(rates.failures, 0), 0) + rates.slow_ms) * rates.out_ratio)::bigint
        as saved_low_ms,
    case
        when rates.unmeasured = 0 then round(
            (poisson_high(rates.failures) * coalesce(rates.failed_ms / nullif(rates.failures, 0), 0) + rates.slow_ms) * rates.out_ratio
        )
    end::bigint as saved_high_ms,
    case
        when rates.out_ratio is not null then printf(
            '%s (%.1f GPU-h) and %.1f GPU-h by late, throttled or faulty ranks in the %.1f h before',
            counted(rates.failures, 'failure'), rates.failed_ms / one_hour_ms(), rates.slow_ms / one_hour_ms(), rates.before_h
        ) || case when rates.unmeasured > 0 then '; the loss of ' || rates.unmeasured || ' is not known' else '' end
    end as saved_evidence,
    case
        when outages.acted_at is not null and outages.end_at is not null and coalesce(outages.is_out_again or rates.is_again, false)
            then 'same cause again'
        else outages.verdict
    end as verdict
from outages
left join rates using (cluster, node, start_ms)
union all
select
    ended.cluster,
    case
        when ended.cause in ('PREEMPTED', 'preempted') or starts_with(ended.eviction_reason, 'Preempted') then 'preemption'
        when ended.evicted_ms is not null or ended.is_requeued or (ended.is_same_job and not ended.is_in_allocation) then 'requeue'
        else 'restart'
    end,
    culprits.node,
    ended.run_key,
    ended.attempt,
    ended.job_name,
    ended.team,
    coalesce(split_part(ended.eviction_reason, ':', 1), ended.cause),
    from_ms(ended.end_ms),
    from_ms(case
        when ended.evicted_ms is not null then ended.evicted_ms
        when not ended.is_same_job and ended.next_submit_ms > ended.end_ms then ended.next_submit_ms
        else ended.end_ms
    end),
    case
        when ended.evicted_ms is not null then 'controller'
        when ended.cause = 'PREEMPTED' then 'scheduler'
        when ended.cause = 'requeued by the job' then 'job'
        when ended.is_in_allocation then case when not ended.is_of_kubernetes then 'job' end
        when ended.is_of_kubernetes then case when ended.is_same_job then 'controller' end
        -- people and jobs requeue with the same state
        when ended.is_requeued then case when ended.is_platform then 'scheduler' end
        when ended.is_same_job or ended.next_submit_ms <= ended.end_ms then 'scheduler'
        when ended.next_user is not null then 'person'
    end,
    case
        when ended.evicted_ms is not null then 'Kueue'
        when not ended.is_same_job and ended.next_submit_ms > ended.end_ms then ended.next_user
    end,
    from_ms(ended.next_ms),
    ended.queue_ms / 1000.0,
    coalesce(by_attempt.stall_ms, 0),
    case when coalesce(by_attempt.stall_ms, 0) = 0 then 0 else by_attempt.stall_cost end,
    case when ended.has_events then coalesce(by_attempt.lost_ms, 0) else by_attempt.lost_ms end,
    case when ended.has_events then coalesce(of_endings.gpu_ms, 0) else of_endings.gpu_ms end - coalesce(by_attempt.stall_ms, 0),
    case when ended.has_events and of_endings.gpu_ms is null then 0 else of_endings.cost end
    - case when coalesce(by_attempt.stall_ms, 0) = 0 then 0 else by_attempt.stall_cost end,
    null,
    null,
    null,
    case
        when repeats.is_same then 'same cause again'
        when not ended.is_back then 'not back'
        when repeats.attempt_key is not null then 'no progress'
        else 'no failure since'
    end
from ended
left join by_attempt using (attempt_key)
left join of_endings using (attempt_key)
left join repeats using (attempt_key)
left join marts.failure_nodes as culprits on ended.attempt_key = culprits.attempt_key and culprits.place = 1
