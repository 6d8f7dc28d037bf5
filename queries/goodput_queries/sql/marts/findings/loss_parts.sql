-- Parts of the losses of the scope's ledger by what is to be done about them: each GPU-millisecond of a loss is in at most
-- one, so that recoverable time is never counted twice. marts.loss_claims adds them up by finding, marts.run_verdicts by run.
-- grain: none
-- skip_if_empty: marts.ledger_hourly_by_node
-- node, gpu_uuid, run_key: what the loss is put on; null where the rule is about something larger
-- of_run_key: the run that lost it; null: none
-- team: of the run; null where the finding names no run and no team
-- case_key: the attempt; of a loss of no run, the node
-- first_ms, last_ms: first and last of it; of work that the end of an attempt lost, this end
-- gpu_ms: milliseconds of a whole GPU; cost: null where the rate card has no price
-- is_sure: certainly recoverable: its cause is confirmed, or idleness was measured
-- cause: of an ending, else null; what_to_do: of an ending, of waits of which the evidence is gone, and of idle time of runs
--  that report no steps; else null
-- subject_ms: last time that is classified of its node, else of its run, else of its cluster, whatever the category
-- run_base_ms: allocated time of the run that lost it; cluster_base_ms: capacity of the cluster
with ledger as materialized (
    select
        cluster, node, run_key, attempt_key, category, team, blame,
        coalesce(phase, '') as phase,
        -- idle time is judged by what comes after it, free time by whether it is free in each hour
        case when category in ('idle_held', 'idle_no_demand') then hour_ms end as judged_hour_ms,
        sum(gpu_ms)::bigint as gpu_ms,
        sum(cost) as cost,
        min(start_ms) as first_ms,
        max(end_ms) as last_ms
    from marts.ledger_blamed_by_node
    group by all
),

of_categories as (
    select rule, target, returns, unnest(categories) as category from reference.finding_rules
),

-- the last activity of a run: GPUs that are idle before it are needed again, whatever they do meanwhile
last_active as (
    select run_key, max(last_ms) as at_ms, bool_or(category <> 'busy_unclassified') as has_steps
    from ledger
    where
        category in ('productive', 'step_unsplit', 'exposed_comm', 'at_risk', 'lost_work', 'busy_unclassified')
        and phase <> 'short_idle'
    group by run_key
),

-- the idle time of a run is one finding, of its larger part: two halves would both be too small to be one
idle_sides as (
    select
        run_key,
        2 * sum(gpu_ms) filter (where ledger.first_ms < last_active.at_ms) >= sum(gpu_ms) as works_on
    from ledger
    inner join last_active using (run_key)
    where category = 'idle_held' and phase not in ('pause', 'standby', 'undeclared_gap')
    group by run_key
),

-- for most of the time without activity other GPUs of the node that nobody has were active: they may be the ones
doubtful as (
    select run_key
    from ledger
    where category = 'idle_held' or category = 'unknown' and phase = 'gpu_assumed'
    group by run_key
    having 2 * sum(gpu_ms) filter (where category = 'unknown') >= sum(gpu_ms)
),

run_bases as (
    select run_key, sum(gpu_ms)::bigint as base_ms from ledger where run_key is not null group by run_key
),

cluster_bases as (
    select cluster, sum(gpu_ms)::bigint as base_ms from ledger group by cluster
),

last_seen as (
    select
        cluster,
        case grouping(node, run_key) when 1 then 'node ' || node when 2 then 'run ' || run_key else '' end as subject,
        max(last_ms) as last_ms
    from ledger
    where category <> 'unknown'
    group by grouping sets ((cluster, node), (cluster, run_key), (cluster))
),

fruitless as (
    select distinct attempt_key from intermediate.int_run_timeline where category = 'failed_without_progress'
),

-- previous_key: whose end made the start necessary. A run needs one start of its own: an attempt that retained nothing is
-- lost with its start, and the next start is the run's own if none before it retained anything
lives as (
    select
        attempts.attempt_key,
        case
            when bool_or(fruitless.attempt_key is null) over (earlier rows between unbounded preceding and 1 preceding)
                then lag(attempts.attempt_key) over earlier
        end as previous_key
    from intermediate.int_attempts as attempts
    left join fruitless using (attempt_key)
    window earlier as (partition by attempts.run_key order by attempts.attempt)
),

hung as (
    select
        attempts.attempt_key,
        min_by({node: hangs.culprit_node, gpu_uuid: hangs.culprit_gpu_uuid}, (hangs.since_at, hangs.hang_key)) as culprit
    from marts.hangs as hangs
    inner join intermediate.int_attempts as attempts using (run_key, attempt)
    where hangs.is_root
    group by attempts.attempt_key
),

-- ends whose node was down or drained after them
taken_out as (
    select distinct culprits.attempt_key
    from marts.failure_nodes as culprits
    inner join intermediate.int_attempts as attempts using (attempt_key)
    inner join marts.node_outages as outages on culprits.cluster = outages.cluster and culprits.node = outages.node
    where culprits.place = 1 and (outages.end_at is null or epoch_ms(outages.end_at) >= attempts.end_ms)
),

endings as (
    select
        causes.attempt_key,
        scope_end(attempts.end_ms) as end_ms,
        case
            when hung.attempt_key is not null then 'hang'
            when causes.blame = 'platform' and not causes.is_platform then 'preempted'
            when causes.is_platform then 'infrastructure_failure'
            when attempts.outcome = 'limit' then 'time_limit'
            else 'job_failure'
        end as rule,
        causes.confidence = 'Confirmed' as is_sure,
        case
            when hung.attempt_key is not null then hung.culprit.node
            when causes.is_platform then culprits.node
        end as node,
        hung.culprit.gpu_uuid as gpu_uuid,
        if(contains(causes.evidence, causes.cause), '', causes.cause || ': ') || causes.evidence as cause,
        case
            when starts_with(causes.fix, 'Drain') and taken_out.attempt_key is not null
                then 'The node was out of service since: see what was done, and drain it again only if it recurs'
            -- whoever cancels a job needs no longer limit
            when causes.cause = 'CANCELLED' then coalesce(causes.fix, 'Save a checkpoint on the signal that comes before the end')
            else causes.fix
        end as what_to_do
    from intermediate.int_attempt_causes as causes
    inner join intermediate.int_attempts as attempts using (attempt_key)
    left join marts.failure_nodes as culprits on causes.attempt_key = culprits.attempt_key and culprits.place = 1
    left join hung on causes.attempt_key = hung.attempt_key
    left join taken_out on causes.attempt_key = taken_out.attempt_key
),

-- waits and throttling inside retained steps, by the GPU that is named for them; of ranks that are late by turns none is
named as (
    select *, sum(wait_ms) over (partition by attempt_key, category, phase) as all_wait_ms
    from (
        select
            splits.attempt_key,
            splits.category,
            coalesce(splits.phase, '') as phase,
            splits.by_gpu_uuid,
            sum(scope_end(splits.end_ms) - scope_start(splits.start_ms)) as wait_ms,
            min(scope_start(splits.start_ms)) as first_ms,
            max(scope_end(splits.end_ms)) as last_ms
        from intermediate.int_step_splits as splits
        where
            splits.category in ('throttled', 'straggler_wait')
            and splits.by_gpu_uuid is not null
            and in_window(splits.start_ms, splits.end_ms)
        group by all
    )
    left join (
        select attempt_key, count(distinct gpu_uuid) as gpus from intermediate.int_rank_gpus group by attempt_key
    ) using (attempt_key)
    qualify
        category = 'throttled'
        or phase <> ''
        or coalesce(wait_ms * gpus >= threshold('straggler_turns') * all_wait_ms, true)
),

waits as (
    select
        attempt_key, category, phase,
        any_value(columns(['cluster', 'run_key', 'team'])),
        sum(gpu_ms)::bigint as gpu_ms,
        sum(cost) as cost,
        min(first_ms) as first_ms,
        max(last_ms) as last_ms
    from ledger
    where category in ('throttled', 'straggler_wait')
    group by attempt_key, category, phase
),

-- never more than the ledger has: a share of a GPU, or a pause inside the step, has less
put_on_gpus as (
    select
        waits.*,
        named.by_gpu_uuid,
        floor(named.wait_ms * least(1, waits.gpu_ms / named.all_wait_ms))::bigint as part_ms,
        named.first_ms as named_first_ms,
        named.last_ms as named_last_ms
    from waits
    inner join named using (attempt_key, category, phase)
),

put_on_nobody as (
    select waits.*, waits.gpu_ms - coalesce(parts.part_ms, 0) as part_ms
    from waits
    left join (
        select attempt_key, category, phase, sum(part_ms) as part_ms from put_on_gpus group by all
    ) as parts using (attempt_key, category, phase)
),

places as (
    select gpu_uuid, arg_max(node, start_ms) as node from intermediate.int_gpu_units group by gpu_uuid
),

parts as (
    select
        case
            when category = 'throttled' or phase = 'throttled_peer' then 'throttled_gpu'
            when phase = 'faulty_peer' then 'faulty_gpu'
            else 'slow_rank'
        end as rule,
        put_on_gpus.cluster,
        places.node,
        put_on_gpus.by_gpu_uuid as gpu_uuid,
        put_on_gpus.run_key,
        put_on_gpus.run_key as of_run_key,
        put_on_gpus.team,
        put_on_gpus.attempt_key as case_key,
        put_on_gpus.named_first_ms as first_ms,
        put_on_gpus.named_last_ms as last_ms,
        put_on_gpus.part_ms as gpu_ms,
        put_on_gpus.cost * put_on_gpus.part_ms / put_on_gpus.gpu_ms as cost,
        false as is_sure,
        null::varchar as cause,
        null::varchar as what_to_do
    from put_on_gpus
    left join places on put_on_gpus.by_gpu_uuid = places.gpu_uuid
    union all
    select
        'rank_skew', cluster, null, null, run_key, run_key, team, attempt_key, first_ms, last_ms, part_ms,
        cost * part_ms / gpu_ms, false, null,
        -- hours are kept for longer than what says who was late in them
        case
            when splits.attempt_key is not null then null
            when category = 'throttled' or phase = 'throttled_peer'
                then 'Look for heat and power limits on its nodes: a GPU was throttled, which one is no longer known'
            when phase = 'faulty_peer'
                then 'Look for errors of GPUs on its nodes: the others waited for one, which one is no longer known'
            else 'See whether one rank or all are late in the next run: who was is no longer known'
        end
    from put_on_nobody
    left join (
        select distinct attempt_key, category
        from intermediate.int_step_splits
        where category in ('throttled', 'straggler_wait')
    ) as splits using (attempt_key, category)
    where part_ms > 0
    union all
    -- what the end of an attempt costs, with the start of the next one
    select
        endings.rule,
        ledger.cluster,
        endings.node,
        endings.gpu_uuid,
        case when endings.rule <> 'infrastructure_failure' or endings.node is null then ledger.run_key end,
        ledger.run_key,
        case when endings.rule <> 'infrastructure_failure' or endings.node is null then ledger.team end,
        endings.attempt_key,
        -- work that a failure lost is older than the failure
        case when ledger.category in ('lost_work', 'failed_without_progress') then endings.end_ms else ledger.first_ms end,
        case when ledger.category in ('lost_work', 'failed_without_progress') then endings.end_ms else ledger.last_ms end,
        ledger.gpu_ms,
        ledger.cost,
        endings.is_sure,
        endings.cause,
        endings.what_to_do
    from ledger
    left join lives using (attempt_key)
    inner join endings
        on endings.attempt_key
            = case when ledger.category in ('startup', 'restore') then lives.previous_key else ledger.attempt_key end
    where
        ledger.category in ('fault_stall', 'lost_work', 'failed_without_progress', 'startup', 'restore')
    union all
    select
        case
            when rules.rule = 'idle_allocation' and idle_sides.works_on then 'gaps_between_steps'
            else rules.rule
        end,
        ledger.cluster,
        case when rules.target = 'node' then ledger.node end,
        null,
        case when rules.returns <> 'none' then ledger.run_key end,
        ledger.run_key,
        ledger.team,
        coalesce(ledger.attempt_key, ledger.node),
        ledger.first_ms,
        ledger.last_ms,
        ledger.gpu_ms,
        ledger.cost,
        ledger.category not in ('idle_with_demand', 'idle_no_demand', 'stranded', 'unknown', 'busy_unclassified')
        -- whoever works again may have needed them
        and (rules.rule <> 'idle_allocation' or last_active.at_ms is null or ledger.first_ms >= last_active.at_ms),
        null,
        case
            when rules.rule = 'idle_allocation' and idle_sides.works_on and not last_active.has_steps
                then 'Give the session of a person a part of a GPU or an idle time-out; '
                    || 'let a job report its steps, and see what it waits for'
        end
    from ledger
    -- time of a phase that a rule names, as `category/phase`, is not of the rule of its category
    left join of_categories as of_phase on of_phase.category = ledger.category || '/' || ledger.phase
    inner join of_categories as rules on rules.category = coalesce(of_phase.category, ledger.category)
    left join lives using (attempt_key)
    left join endings as before on lives.previous_key = before.attempt_key
    left join last_active on ledger.run_key = last_active.run_key
    left join idle_sides on ledger.run_key = idle_sides.run_key
    where
        -- a pause is over before anybody could use the GPU
        not (ledger.category = 'idle_held' and (ledger.phase = 'pause' or ledger.run_key in (from doubtful)))
        -- what a failure made necessary is its cost
        and (ledger.category not in ('startup', 'restore') or before.attempt_key is null)
)

select
    parts.* replace (parts.gpu_ms::bigint as gpu_ms),
    last_seen.last_ms as subject_ms,
    run_bases.base_ms as run_base_ms,
    cluster_bases.base_ms as cluster_base_ms
from parts
inner join cluster_bases using (cluster)
left join run_bases on parts.of_run_key = run_bases.run_key
left join last_seen
    on parts.cluster = last_seen.cluster
    and coalesce('node ' || parts.node, 'run ' || parts.run_key, '') = last_seen.subject
