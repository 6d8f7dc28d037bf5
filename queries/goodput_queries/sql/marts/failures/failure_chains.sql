-- What happened to each attempt that ended badly in the scope's window, and to its GPUs and nodes: from an
-- hour before the trouble to its end and the start of the next attempt, in order of time.
-- grain: attempt_key, position
-- access: team
-- evaluated: first
-- position: from 1; of more than 50 events (threshold chain_max_events) the last are kept
-- event_at: when; of a counter the start of the hour in which it rose
-- what: in a few words
-- detail: message or meaning, null where there is none
-- node, gpu_index, gpu_uuid: where, null where it is of the whole attempt
-- source: who reports it
-- events: number of reports that the row stands for
with attempts as (
    select *, trouble_from_ms - threshold('chain_before_ms')::bigint as from_ms, trouble_until_ms as until_ms
    from intermediate.int_failed_attempts_in_scope
),

gpus as (
    select held.*, attempts.from_ms, attempts.until_ms
    from intermediate.int_failure_gpus as held
    inner join attempts using (attempt_key)
),

nodes as (select distinct attempt_key, cluster, node, from_ms, until_ms from gpus),

gpu_events as (
    select
        gpus.attempt_key,
        gpus.node,
        gpus.gpu_index,
        gpus.gpu_uuid,
        events.at_ms,
        events.kind,
        events.code,
        events.source,
        events.message
    from gpus
    inner join staging.stg_gpu_events as events
        on is_of_gpu(events, gpus)
        and events.at_ms between gpus.from_ms and gpus.until_ms
    where events.ts_precision <> 'at_or_before' or events.source = 'nvml'
),

steps as (
    select
        steps.attempt_key,
        max(steps.end_ms) as at_ms,
        max(steps.step) as step,
        max(steps.step) filter (where steps.fate = 'kept') as kept_step
    from intermediate.int_train_steps as steps
    semi join attempts using (attempt_key)
    group by steps.attempt_key
),

events as (
    select attempt_key, start_ms as at_ms, 1 as place, 'attempt ' || attempt || ' began' as what, null::varchar as detail,
        'scheduler' as source, 1::bigint as events
    from attempts
    where start_ms >= from_ms
    union all by name
    select
        steps.attempt_key,
        steps.at_ms,
        2 as place,
        'step ' || steps.step || ' completed, the last one' as what,
        case
            when steps.kept_step = steps.step then 'retained'
            when steps.kept_step is null then 'no step was retained'
            else 'retained up to step ' || steps.kept_step
        end as detail,
        'job' as source,
        1 as events
    from steps
    union all by name
    select
        gpu_events.attempt_key,
        min(gpu_events.at_ms) as at_ms,
        3 as place,
        case when gpu_events.kind = 'xid' then 'Xid ' || gpu_events.code else replace(gpu_events.kind, '_', ' ') end as what,
        coalesce(any_value(codes.meaning), left(any_value(gpu_events.message order by gpu_events.at_ms), 200)) as detail,
        gpu_events.node,
        gpu_events.gpu_index,
        gpu_events.gpu_uuid,
        replace(gpu_events.source, '-', ' ') as source,
        count(*) as events
    from gpu_events
    left join reference.xid_codes as codes on gpu_events.kind = 'xid' and gpu_events.code = codes.xid
    group by gpu_events.attempt_key, gpu_events.node, gpu_events.gpu_index, gpu_events.gpu_uuid, gpu_events.kind,
        gpu_events.code, gpu_events.source
    union all by name
    select
        attempt_key,
        counters.first_ms as at_ms,
        3 as place,
        case counters.kind
            when 'thermal' then round(counters.rise)::bigint || ' s of thermal slowdown'
            when 'remap_failed' then 'a row of memory could not be remapped'
            else counters.rise::bigint || ' ' || case counters.kind
                when 'ecc_uncorrected' then 'uncorrected ECC errors' when 'row_remap' then 'row remaps'
                when 'nvlink' then 'NVLink errors' else 'PCIe replays'
            end
        end as what,
        'until ' || strftime(from_ms(counters.until_ms), '%H:%M') || ' UTC' as detail,
        counters.node,
        counters.gpu_index,
        counters.gpu_uuid,
        'GPU counters' as source,
        1 as events
    from intermediate.int_failure_counters as counters
    where counters.kind <> 'thermal' or counters.rise >= threshold('cause_thermal_s')
    union all by name
    select
        nodes.attempt_key,
        states.start_ms as at_ms,
        3 as place,
        'node ' || states.state as what,
        left(states.reason, 200) as detail,
        nodes.node,
        replace(states.source, '-', ' ') as source,
        1 as events
    from nodes
    inner join staging.stg_node_states as states
        on nodes.cluster = states.cluster
        and nodes.node = states.node
        and states.state in ('down', 'drained', 'maintenance')
        and states.start_ms between nodes.from_ms and nodes.until_ms
    union all by name
    select
        nodes.attempt_key,
        events.at_ms,
        3 as place,
        'out-of-memory kill' as what,
        left(coalesce(nullif(events.process_name, '') || ' (process ' || events.pid || ')', events.message), 200) as detail,
        nodes.node,
        replace(events.source, '-', ' ') as source,
        1 as events
    from nodes
    inner join staging.stg_node_events as events
        on nodes.cluster = events.cluster
        and nodes.node = events.node
        and events.at_ms between nodes.from_ms and nodes.until_ms
    where events.kind = 'oom_kill'
    union all by name
    select
        nodes.attempt_key,
        epoch_ms(links.start_at) as at_ms,
        3 as place,
        'link down' as what,
        links.device || coalesce(' port ' || links.port, '') as detail,
        nodes.node,
        'network counters' as source,
        1 as events
    from nodes
    inner join marts.link_events as links
        on nodes.cluster = links.cluster
        and nodes.node = links.node
        and epoch_ms(links.start_at) between nodes.from_ms and nodes.until_ms
    union all by name
    select
        attempts.attempt_key,
        epoch_ms(hangs.since_at) as at_ms,
        4 as place,
        'hang in ' || hangs.operation || coalesce('; behind: rank ' || array_to_string(hangs.culprit_ranks[:8], ', '), '') as what,
        hangs.evidence as detail,
        hangs.culprit_node as node,
        hangs.culprit_gpu_uuid as gpu_uuid,
        hangs.evidence_sources as source,
        1 as events
    from marts.hangs as hangs
    inner join attempts using (run_key, attempt)
    where epoch_ms(hangs.since_at) between attempts.from_ms and attempts.until_ms
    union all by name
    select
        attempts.attempt_key,
        epoch_ms(found.step_at) as at_ms,
        4 as place,
        case found.kind when 'diverged' then 'loss diverged' else 'loss not finite' end || ' at step ' || found.step as what,
        'last finite loss ' || round(found.last_finite_loss, 4) || ' at step ' || found.last_finite_step as detail,
        'job' as source,
        found.steps as events
    from marts.loss_anomalies as found
    inner join attempts using (attempt_key)
    where epoch_ms(found.step_at) between attempts.from_ms and attempts.until_ms
    union all by name
    select
        attempts.attempt_key,
        attempts.said_ms as at_ms,
        5 as place,
        'job failure: ' || coalesce(kinds.label, attempts.said_kind, 'not named') as what,
        left(attempts.said_msg, 300) as detail,
        'job' as source,
        1 as events
    from attempts
    left join reference.failure_kinds as kinds on attempts.said_kind = kinds.kind
    where attempts.said_ms is not null
    union all by name
    select
        attempt_key,
        end_ms as at_ms,
        6 as place,
        case
            when is_last_of_job_run then 'job ended: ' || coalesce(state, 'state not known')
            else 'attempt ended; the job went on'
        end as what,
        null as detail,
        case when is_last_of_job_run then 'scheduler' else 'job' end as source,
        1 as events
    from attempts
    union all by name
    select
        attempts.attempt_key,
        later.start_ms as at_ms,
        7 as place,
        'attempt ' || later.attempt || ' began' as what,
        'after ' || (later.start_ms - attempts.end_ms) // 1000 || ' s' as detail,
        case when later.job_run_key = attempts.job_run_key then 'job' else 'scheduler' end as source,
        1 as events
    from attempts
    inner join intermediate.int_attempts as later
        on attempts.run_key = later.run_key and attempts.attempt + 1 = later.attempt and of_teams(later.team)
),

numbered as (
    select
        *,
        row_number() over (partition by attempt_key order by at_ms, place, node, gpu_index, what, source) as position,
        count(*) over (partition by attempt_key) as all_events
    from events
)

select
    attempts.cluster,
    attempts.run_key,
    attempts.run_id,
    attempts.attempt,
    attempts.attempt_key,
    attempts.team,
    numbered.position - greatest(numbered.all_events - threshold('chain_max_events')::bigint, 0) as position,
    from_ms(numbered.at_ms) as event_at,
    numbered.* exclude (attempt_key, at_ms, place, position, all_events)
from numbered
inner join attempts using (attempt_key)
where numbered.position > numbered.all_events - threshold('chain_max_events')::bigint
