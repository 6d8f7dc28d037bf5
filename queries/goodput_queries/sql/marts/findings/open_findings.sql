-- Findings that are open at the end of the evidence, with what a notification says of them: one row for each rule and subject.
-- grain: finding_key
-- evaluated: first
-- user_name: who submitted the run; null where no scheduler says it, or where it is about no run
-- job_name: of the last attempt of the run
-- idle_gpus, idle_since_at: of idle GPUs of a run: the gap of its gang that goes on, where there is one
-- other columns: of marts.findings
with runs as (
    select run_key, arg_max(user_name, attempt) as user_name, arg_max(job_name, attempt) as job_name
    from intermediate.int_attempts
    group by run_key
),

idle as (
    select
        gaps.run_key,
        max_by(gaps.gpus, gaps.start_at) as idle_gpus,
        max(gaps.start_at) as idle_since_at
    from marts.gang_gaps as gaps
    inner join intermediate.int_clusters as clusters using (cluster)
    where to_ms(gaps.end_at) >= clusters.as_of_ms - threshold('finding_now_ms')
    group by gaps.run_key
)

select
    findings.finding_key,
    findings.rule,
    findings.kind,
    findings.severity,
    findings.title,
    findings.subject,
    findings.cluster,
    findings.node,
    findings.gpu_uuid,
    findings.gpu_index,
    findings.run_key,
    findings.run_name,
    runs.job_name,
    findings.team,
    runs.user_name,
    findings.owner,
    findings.state,
    findings.since_at,
    findings.until_at,
    findings.gpu_ms,
    case when findings.rule = 'idle_allocation' then idle.idle_gpus end as idle_gpus,
    case when findings.rule = 'idle_allocation' then idle.idle_since_at end as idle_since_at,
    findings.confidence,
    findings.evidence,
    findings.what_to_do
from marts.findings as findings
left join runs on findings.run_key = runs.run_key
left join idle on findings.run_key = idle.run_key
where findings.is_open
qualify row_number() over (partition by findings.finding_key order by findings.since_at desc) = 1
