-- Why an attempt ended badly, as far as evidence goes: what the scheduler, the job and the GPUs said.
-- grain: attempt_key
-- is_platform: the evidence names infrastructure
-- confidence: Confirmed (the scheduler or a hardware Xid on a held GPU), Likely (the job said so), Not confirmed
with attempts as (
    select * from intermediate.int_attempts where outcome in ('failed', 'limit')
),

-- two sources may tell of one Xid: they are counted apart
xids_by_source as (
    select
        attempts.attempt_key,
        events.source,
        arg_min(events.code, events.ts) as code,
        arg_min(codes.meaning, events.ts) as meaning,
        arg_min(events.node, events.ts) as node,
        min(events.ts) as first_at,
        count(*) as n
    from attempts
    inner join intermediate.int_holds as holds using (job_run_key)
    inner join intermediate.int_gpu_inventory as gpus on holds.gpu_uuid = gpus.gpu_uuid
    inner join raw.gpu_events as events
        on (events.gpu_uuid = gpus.gpu_uuid
            or (events.gpu_uuid is null and events.node = gpus.node and events.pci_bus_id = gpus.pci_bus_id))
        -- an Xid within five minutes before the end or one after it speaks of the ending
        and to_ms(events.ts) between attempts.end_ms - 300000 and attempts.end_ms + 60000
        -- a latch first seen at start-up may have been set months ago
        and (events.ts_precision <> 'at_or_before' or events.source not in ('dcgm', 'prometheus'))
    inner join reference.xid_codes as codes
        on events.code = codes.xid
        and (
            codes.severity in ('gpu_fatal', 'node_fatal')
            or (codes.severity = 'job_fatal' and codes.fault_domain = 'hardware')
        )
    group by attempts.attempt_key, events.source
),

xids as (
    select
        attempt_key,
        arg_min(code, first_at) as code,
        arg_min(meaning, first_at) as meaning,
        arg_min(node, first_at) as node,
        max(n) as n,
        string_agg(replace(source, '-', ' '), ' and ' order by source) as sources
    from xids_by_source
    group by attempt_key
),

said as (select * from intermediate.int_said_failures),

steps_oom as (
    select distinct runs.job_run_key
    from intermediate.int_job_runs as runs
    inner join raw.job_steps as steps using (cluster, job_id_raw)
    where steps.state = 'OUT_OF_MEMORY' and to_ms(steps.end_at) between runs.start_ms and runs.end_ms + 1000
)

select
    attempts.attempt_key,
    case
        when xids.code is not null then 'Xid ' || xids.code
        when attempts.is_infrastructure then attempts.state
        when said.kind is not null then said.kind
        when steps_oom.job_run_key is not null then 'OUT_OF_MEMORY'
        when attempts.outcome = 'failed' and attempts.state = 'COMPLETED' then 'restarted inside its job'
        when not attempts.is_last_of_job_run then 'restarted inside its job'
        else attempts.state
    end as cause,
    xids.code is not null or attempts.is_infrastructure as is_platform,
    case
        when xids.code is not null or attempts.is_infrastructure or steps_oom.job_run_key is not null then 'Confirmed'
        when said.kind is not null then 'Likely'
        else 'Not confirmed'
    end as confidence,
    case
        when xids.code is not null
            then xids.sources || ': Xid ' || xids.code || ' (' || coalesce(xids.meaning, 'unknown') || ') on '
                || coalesce(xids.node, '?') || ', ' || xids.n || ' line(s)'
        when attempts.is_infrastructure then 'scheduler state ' || attempts.state
        when said.kind is not null then 'job said: ' || said.kind || coalesce(' ' || left(said.msg, 120), '')
        when steps_oom.job_run_key is not null then 'a step of the job ended OUT_OF_MEMORY'
        when not attempts.is_last_of_job_run
            then 'another life of the processes began in the same job; nothing says why this one ended'
        else 'scheduler state ' || attempts.state
    end as evidence
from attempts
left join xids using (attempt_key)
left join said using (attempt_key)
left join steps_oom using (job_run_key)
