-- Runs (training tasks across attempts and job runs) with their ledger in the window, lineage and a verdict.
-- grain: run_key
-- access: team
-- evaluated: first
-- run_name: the run's display name: the scheduler's number with the job's name
-- held_ms: GPU time allocated in the window
-- kept_step_ms: retained step time less data stalls (S of the accounting rules)
-- lost_ms: lost work, fault stalls and attempts that retained no step
-- definition_version: of goodput; see macros/ratios.sql
-- useful_ms: productive, communication, step not split (and declared work, where evaluation counts)
-- goodput_of_held_ratio: useful / allocated; null where none of the allocated time is classified
-- goodput_of_held_hi_ratio: its upper end, if all unclassified time was useful
-- runtime_lo_ratio, runtime_hi_ratio: null where more than half of allocated - gang wait is unclassified
-- ettr_ratio: retained step time / (last end - first eligible), over the whole run; queue waits count
-- ettr_hi_ratio: the same if all unclassified time was useful
-- google_goodput_ratio: retained step time / (last end - first start), as Google's ml-goodput-measurement defines it
-- nvcre_goodput_ratio: see marts.run_wall_clock
-- restarts: attempts after the first
-- hangs: collectives and transfers that never ended, less those that wait for another one
-- verdict, verdict_confidence, verdict_evidence: of its largest finding, see marts.run_verdicts; null: it has none
with ledger as (
    select
        run_key,
        sum(gpu_ms)::bigint as held_ms,
        coalesce(sum(gpu_ms) filter (where is_kept_step(category)), 0)::bigint as kept_step_ms,
        coalesce(sum(gpu_ms) filter (where is_useful(category)), 0)::bigint as useful_ms,
        coalesce(sum(gpu_ms) filter (where category = 'productive'), 0)::bigint as productive_ms,
        coalesce(sum(gpu_ms) filter (where category = 'step_unsplit'), 0)::bigint as step_unsplit_ms,
        coalesce(sum(gpu_ms) filter (where is_unsettled(category)), 0)::bigint as unsettled_ms,
        coalesce(sum(gpu_ms) filter (where category = 'gang_wait'), 0)::bigint as gang_wait_ms,
        coalesce(sum(gpu_ms) filter (
            where category in ('lost_work', 'fault_stall', 'failed_without_progress')
        ), 0)::bigint as lost_ms,
        coalesce(sum(gpu_ms) filter (where kind = 'badput'), 0)::bigint as wasted_ms,
        sum(cost) as cost,
        -- nothing wasted costs nothing; without any price it is not known
        case when sum(cost) is not null then coalesce(sum(cost) filter (where kind = 'badput'), 0) end as wasted_cost
    from marts.run_categories
    group by run_key
),

lineage as (
    select
        run_key,
        any_value(columns(['run_id', 'cluster', 'job_name', 'team', 'user_name', 'partition'])),
        max(numbered_run_name(run_id, job_id, job_name)) as numbered_name,
        arg_max(state, attempt) as state,
        max(gpus) as gpus,
        count(*) as attempts,
        count(distinct job_run_key) as job_runs,
        count(*) - 1 as restarts,
        min(eligible_ms) as first_eligible_ms,
        min(start_ms) as first_start_ms,
        bool_or(end_ms is null) as is_running,
        max(coalesce(end_ms, clusters.as_of_ms)) as last_end_ms
    from intermediate.int_attempts
    inner join intermediate.int_clusters as clusters using (cluster)
    where of_teams(team)
    group by run_key
),

-- over the whole run, whatever the window: of each job run's wall time the share that its GPUs spent in kept
-- steps, since a run may change its size from one job run to the next
whole as (
    select
        owners.run_key,
        sum(per_job_run.kept_ms / nullif(per_job_run.held_ms, 0) * lives.wall_ms) as kept_wall_ms,
        sum(per_job_run.open_ms / nullif(per_job_run.held_ms, 0) * lives.wall_ms) as open_wall_ms
    from (
        select
            job_run_key,
            coalesce(sum(gpu_ms) filter (where is_kept_step(category)), 0) as kept_ms,
            coalesce(sum(gpu_ms) filter (where is_unsettled(category)), 0) as open_ms,
            sum(gpu_ms) as held_ms
        from marts.ledger_hourly_by_node
        where job_run_key is not null
        group by job_run_key
    ) as per_job_run
    inner join intermediate.int_job_run_owners as owners using (job_run_key)
    inner join (
        select
            attempts.job_run_key,
            max(coalesce(attempts.end_ms, clusters.as_of_ms)) - min(attempts.start_ms) as wall_ms
        from intermediate.int_attempts as attempts
        inner join intermediate.int_clusters as clusters using (cluster)
        group by attempts.job_run_key
    ) as lives using (job_run_key)
    where of_teams(owners.team)
    group by owners.run_key
),

hangs as (
    select run_key, count(*) as hangs
    from marts.hangs
    where is_root and run_key is not null
    group by run_key
)

select
    lineage.* exclude (numbered_name, first_eligible_ms, first_start_ms, last_end_ms),
    coalesce(lineage.numbered_name, lineage.run_id) as run_name,
    from_ms(lineage.first_eligible_ms) as first_eligible_at,
    from_ms(lineage.first_start_ms) as first_start_at,
    from_ms(lineage.last_end_ms) as last_end_at,
    ledger.* exclude (run_key, gang_wait_ms),
    definition_version() as definition_version,
    measured_goodput_ratio(ledger.useful_ms, ledger.unsettled_ms, ledger.held_ms) as goodput_of_held_ratio,
    goodput_hi_ratio(ledger.useful_ms, ledger.unsettled_ms, ledger.held_ms) as goodput_of_held_hi_ratio,
    runtime_lo_ratio(ledger.kept_step_ms, ledger.unsettled_ms, ledger.held_ms, ledger.gang_wait_ms) as runtime_lo_ratio,
    runtime_hi_ratio(ledger.kept_step_ms, ledger.unsettled_ms, ledger.held_ms, ledger.gang_wait_ms) as runtime_hi_ratio,
    case
        when whole.kept_wall_ms > 0 or ledger.unsettled_ms = 0
            then coalesce(whole.kept_wall_ms, 0)
                / nullif(lineage.last_end_ms - coalesce(lineage.first_eligible_ms, lineage.first_start_ms), 0)
    end as ettr_ratio,
    (whole.kept_wall_ms + whole.open_wall_ms)
        / nullif(lineage.last_end_ms - coalesce(lineage.first_eligible_ms, lineage.first_start_ms), 0) as ettr_hi_ratio,
    case
        when whole.kept_wall_ms > 0 or ledger.unsettled_ms = 0
            then coalesce(whole.kept_wall_ms, 0) / nullif(lineage.last_end_ms - lineage.first_start_ms, 0)
    end as google_goodput_ratio,
    wall_clock.nvcre_goodput_ratio,
    coalesce(hangs.hangs, 0) as hangs,
    verdicts.verdict,
    verdicts.confidence as verdict_confidence,
    verdicts.evidence as verdict_evidence
from ledger
inner join lineage using (run_key)
left join whole using (run_key)
left join marts.run_wall_clock as wall_clock using (run_key)
left join marts.run_verdicts as verdicts using (run_key)
left join hangs using (run_key)
