-- Xids on the GPUs of an attempt in the trouble before its bad end, by code and node. An Xid is of one attempt of
-- its job run: one that began after it is not explained by it a second time.
-- grain: attempt_key, cluster, node, code
-- class: hardware (or driver), application (a program causes it); other codes explain no failure
-- place: hardware before application, then the first incident; of it the worst code
-- gpus: number of GPUs with it; gpu_uuid, gpu_index: the first of them
-- incidents: number of incidents of these GPUs with the code
-- lines: most that one source reports
-- sources: who reports it
with held as (
    select job_run_key, gpu_uuid, min(start_ms) as from_ms, max(coalesce(end_ms, forever_ms() - 60000)) as until_ms
    from intermediate.int_holds
    group by job_run_key, gpu_uuid
),

matched as (
    select
        attempts.attempt_key,
        attempts.job_run_key,
        attempts.start_ms as attempt_start_ms,
        stays.cluster,
        stays.node,
        stays.gpu_uuid,
        stays.gpu_index,
        events.source,
        events.ts,
        events.ts_ms,
        events.code,
        codes.meaning,
        codes.recommended_action as action,
        error_severity(events.kind, codes.severity, events.message) as event_severity,
        case
            when
                event_severity in ('gpu_fatal', 'node_fatal')
                or (event_severity = 'job_fatal' and codes.fault_domain = 'hardware')
                then 'hardware'
            when event_severity = 'job_fatal' and codes.fault_domain = 'user' then 'application'
        end as class,
        case event_severity when 'node_fatal' then 0 when 'gpu_fatal' then 1 else 2 end as badness
    from intermediate.int_failed_attempts as attempts
    inner join held using (job_run_key)
    inner join intermediate.int_gpu_inventory as stays on held.gpu_uuid = stays.gpu_uuid
    inner join staging.stg_gpu_errors as events
        on is_of_gpu(events, stays)
        and events.ts_ms between attempts.trouble_from_ms and attempts.trouble_until_ms
        and events.ts_ms between held.from_ms and held.until_ms + 60000
        and events.ts_ms >= coalesce(stays.start_ms, 0)
        and events.ts_ms < coalesce(stays.end_ms, forever_ms())
    inner join reference.xid_codes as codes on events.code = codes.xid
),

-- two stays of one GPU are two rows of the inventory
own as (
    select *
    from matched
    where class is not null
    qualify row_number() over (
        partition by job_run_key, gpu_uuid, source, ts, code order by attempt_start_ms, node
    ) = 1
),

-- a new incident begins after quiet minutes
marked as (
    select
        *,
        coalesce(
            ts_ms - lag(ts_ms) over (partition by attempt_key, gpu_uuid order by ts_ms) > threshold('incident_quiet_ms'),
            true
        ) as is_new
    from own
),

dated as (
    select
        *,
        max(case when is_new then ts_ms end) over (
            partition by attempt_key, gpu_uuid order by ts_ms range between unbounded preceding and current row
        ) as incident_ms
    from marked
)

select
    attempt_key,
    cluster,
    node,
    code,
    any_value(columns(['class', 'meaning', 'action'])),
    min(ts_ms) as first_ms,
    max(ts_ms) as last_ms,
    min({
        class: case class when 'hardware' then 0 else 1 end, incident_ms: incident_ms, badness: badness, ts: ts, code: code
    }) as place,
    count(distinct gpu_uuid) as gpus,
    arg_min(gpu_uuid, (ts, gpu_uuid)) as gpu_uuid,
    arg_min(gpu_index, (ts, gpu_uuid)) as gpu_index,
    count(distinct (gpu_uuid, incident_ms)) as incidents,
    list_max(map_values(histogram(source)))::bigint as lines,
    string_agg(distinct replace(source, '-', ' '), ' and ' order by replace(source, '-', ' ')) as sources
from dated
group by attempt_key, cluster, node, code
