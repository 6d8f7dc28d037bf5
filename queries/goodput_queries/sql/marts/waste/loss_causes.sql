-- GPU time that each run of the scope lost to each category, and free or unavailable time by cluster; each with cause,
-- evidence, confidence and recommended action. marts.losses counts the GPUs too.
-- grain: cluster, run_key, category, blame
-- access: team
-- evaluated: first
-- team: null where the scope has several that call the run alike
-- blame: who caused it (reference.blame_by_cause)
-- confidence: Confirmed, Likely, Not confirmed
with rows_ as (
    select
        rows_.*,
        categories.label,
        categories.colour,
        categories.kind
    from marts.ledger_blamed_by_node as rows_
    inner join reference.gpu_second_categories as categories using (category)
    where categories.kind in ('badput', 'unavailable', 'unsettled', 'unknown')
),

-- GPUs that are idle before the last activity of their run are needed again
worked as (
    select run_key, max(end_ms) as worked_until_ms
    from rows_
    where category = 'busy_unclassified' and phase is distinct from 'short_idle'
    group by run_key
),

grouped as (
    select
        cluster,
        run_key,
        any_value(columns(['run_id', 'job_name', 'user_name', 'label', 'colour', 'kind'])),
        case when count(distinct team) <= 1 then any_value(team) end as team,
        case when count(distinct node) = 1 then min(node) else count(distinct node) || ' nodes' end as node,
        category,
        blame,
        sum(gpu_ms)::bigint as gpu_ms,
        sum(cost) as cost,
        min(hour_ms) as first_hour_ms,
        max(hour_ms) as last_hour_ms,
        coalesce(2 * sum(gpu_ms) filter (where phase = 'idle' and start_ms < worked_until_ms) >= sum(gpu_ms) filter (where phase = 'idle'), false)
            as works_on
    from rows_
    left join worked using (run_key)
    group by cluster, run_key, category, blame
),

-- the cause of a loss is that of the attempt and phase that lost most; a pause is one of idle time only where nothing else is
most as (
    select
        cluster,
        run_key,
        category,
        blame,
        max({is_over: phase <> 'pause', gpu_ms: gpu_ms, attempt_key: attempt_key, phase: phase}) as part
    from (
        select cluster, run_key, category, blame, attempt_key, coalesce(phase, '') as phase, sum(gpu_ms) as gpu_ms
        from rows_
        group by all
    )
    group by cluster, run_key, category, blame
)
,

-- for the attempts that determine the cause: source of their waits, and the GPU that each wait is attributed to
waits as (
    select
        attempt_key,
        category,
        coalesce(phase, '') as phase,
        by_gpu_uuid,
        min(measured_by) as measured_by,
        sum(end_ms - start_ms) as wait_ms
    from intermediate.int_step_splits
    where
        category in ('throttled', 'straggler_wait')
        and attempt_key in (select part.attempt_key from most where category in ('throttled', 'straggler_wait'))
    group by all
),

measured as (
    select attempt_key, phase, min(measured_by) as measured_by
    from waits
    where category = 'straggler_wait'
    group by attempt_key, phase
),

-- the GPU of each attempt that cost its gang most, with its own loss (marts.blast_radius)
culprits as (
    select
        attempt_key,
        phase,
        arg_max('GPU ' || coalesce(gpu_index::varchar, gpu_uuid) || coalesce(' of ' || node, ''), (gang_ms, gpu_uuid))
            || case when count(*) > 1 then ' and ' || (count(*) - 1) || ' more' else '' end as gpu,
        sum(gang_ms) / 1000.0 as gang_gpu_s
    from (
        select
            waits.attempt_key,
            waits.phase,
            waits.by_gpu_uuid as gpu_uuid,
            max(units.node) as node,
            max(units.gpu_index) as gpu_index,
            any_value(waits.gang_ms) as gang_ms
        from (
            select attempt_key, phase, by_gpu_uuid, sum(wait_ms) as gang_ms
            from (select * replace (case when category = 'throttled' then 'throttled_peer' else phase end as phase) from waits)
            where by_gpu_uuid is not null
            group by attempt_key, phase, by_gpu_uuid
        ) as waits
        left join intermediate.int_gpu_units as units on waits.by_gpu_uuid = units.gpu_uuid
        group by waits.attempt_key, waits.phase, waits.by_gpu_uuid
    )
    group by attempt_key, phase
)

select
    grouped.* exclude (kind, first_hour_ms, last_hour_ms, works_on),
    from_ms(grouped.first_hour_ms) as first_at,
    from_ms(grouped.last_hour_ms + one_hour_ms()) as last_at,
    case
        when is_serving(most.part.phase) then phases.label
        when grouped.category in ('fault_stall', 'lost_work', 'failed_without_progress') then causes.cause
        when culprits.gpu is not null
            then culprits.gpu || case culprits.phase
                when 'faulty_peer' then ' had a hardware error' when 'throttled_peer' then ' was throttled' else ' was late'
            end
        else coalesce(phases.label, nullif(replace(most.part.phase, '_', ' '), ''))
    end as cause,
    case
        when most.part.phase = 'objective_unknown' then 'Not confirmed'
        when is_serving(most.part.phase) then 'Confirmed'
        when grouped.category in ('fault_stall', 'lost_work', 'failed_without_progress') then causes.confidence
        when grouped.category in ('straggler_wait', 'throttled') then 'Likely'
        when grouped.category in ('free_unknown', 'unknown', 'busy_unclassified', 'at_risk') then 'Not confirmed'
        when grouped.category in ('idle_held', 'idle_with_demand', 'idle_no_demand', 'stranded') then 'Likely'
        else 'Confirmed'
    end as confidence,
    case
        when most.part.phase = 'slo_miss' then 'request log, or histograms of latencies, of the serving engine'
        when most.part.phase = 'objective_unknown' then 'histograms of single latencies leave it open, or none is there'
        when most.part.phase = 'standby' then 'serving telemetry: no request ran or waited'
        when most.part.phase = 'model_load' then 'time from allocation (or restart) to the first answer of the engine'
        when grouped.category in ('fault_stall', 'lost_work', 'failed_without_progress') then causes.evidence
        when grouped.category in ('restore', 'checkpoint_save', 'other_declared') then 'declared by the job'
        when grouped.category = 'startup' then 'time from allocation (or restart) to the first step'
        when grouped.category = 'data_stall' then 'data_s of the job''s step events'
        when culprits.phase = 'faulty_peer' then 'Xid of a GPU that the others waited for'
        when culprits.phase = 'throttled_peer' then 'slowdown reason of a GPU while steps ran over the unthrottled median'
        when measured.measured_by = 'job' then 'straggler_s of the job''s step events'
        when measured.measured_by = 'comm_s' then 'comm_s of all ranks: what each has over the least'
        when measured.measured_by = 'step parts' then 'fwd_s and bwd_s of all ranks: parts over those of the late one'
        when measured.measured_by = 'profiler trace' then 'exposed NCCL kernels in PyTorch profiler traces of all ranks'
        when measured.measured_by = 'NCCL profiler'
            then 'waits in NCCL collectives compared with the step''s excess'
        when grouped.category = 'straggler_wait' then 'steps over the median of those without a slowdown reason'
        when grouped.category = 'teardown' then 'time from the last step to release'
        when grouped.category = 'idle_held' then 'telemetry: no activity, or no process'
        when grouped.category in ('down', 'drained', 'maintenance', 'powered_off') then 'scheduler node states'
        when grouped.category in ('idle_with_demand', 'idle_no_demand') then 'scheduler queue and node states'
        when grouped.category = 'suspended' then 'suspended time in the accounting'
        when grouped.category = 'unknown' then 'no telemetry and no job events in that time'
        when grouped.category = 'busy_unclassified' then 'telemetry alone: busy, or idle under the limit'
        when grouped.category = 'free_unknown' then 'they were not allocated and no node state is known'
        when grouped.category = 'at_risk' then 'steps after the last durable checkpoint'
        else 'definition: ' || grouped.label
    end || coalesce('; ' || culprits.gpu || ' cost the gang ' || printf('%.1f', culprits.gang_gpu_s) || ' GPU-s', '')
        as evidence,
    case
        when most.part.phase in ('slo_miss', 'objective_unknown', 'pause') then null
        -- a job that steps needs its GPUs
        when grouped.category = 'idle_held' and (most.part.phase = 'undeclared_gap' or grouped.works_on)
            then 'See what the job does between its steps: run that beside the training, or report it as an event'
        when grouped.category = 'idle_held' and most.part.phase = 'standby'
            then 'Scale the model down while nobody asks, or share its GPUs with another'
        when grouped.category in ('fault_stall', 'lost_work', 'failed_without_progress')
            then nullif(concat_ws('. ', causes.fix, fixes.fix), '')
        else fixes.fix
    end as fix
from grouped
inner join most
    on grouped.cluster is not distinct from most.cluster
    and grouped.run_key is not distinct from most.run_key
    and grouped.category = most.category
    and grouped.blame = most.blame
left join reference.fixes as fixes on grouped.category = fixes.category
left join reference.phases as phases on most.part.phase = phases.phase
left join intermediate.int_attempt_causes as causes on most.part.attempt_key = causes.attempt_key
left join measured
    on grouped.category = 'straggler_wait'
    and most.part.attempt_key = measured.attempt_key
    and coalesce(measured.phase, '') = most.part.phase
left join culprits
    on most.part.attempt_key = culprits.attempt_key
    and culprits.phase
        = case when grouped.category = 'throttled' then 'throttled_peer' else coalesce(most.part.phase, '') end
    and grouped.category in ('throttled', 'straggler_wait')
