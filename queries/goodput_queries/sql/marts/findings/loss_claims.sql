-- The losses of the scope's ledger by what is to be done about them: each GPU-millisecond of a loss is in at most one row,
-- so that recoverable time is never counted twice.
-- grain: rule, cluster, node, gpu_uuid, run_key, team
-- access: team
-- skip_if_empty: marts.loss_parts
-- node, gpu_uuid, run_key: what the loss is put on; null where the rule is about something larger
-- team: of the run; null where the loss is of no run; of time that nothing classifies the team alone is named
-- since_ms, until_ms: first and last of it in the window; of a late, throttled or faulty GPU the first and last wait for it
-- subject_ms: last time that is classified of what it is put on, whatever the category
-- gpu_ms: milliseconds of a whole GPU; cost: null where the rate card has no price
-- sure_ms: the part that is certainly recoverable: its cause is confirmed, or idleness was measured
-- cases: number of attempts; of a loss of no run, of nodes
-- cause, what_to_do: of an ending, that of the attempt that lost most; of GPUs free while jobs wait, the names of three of
--  them; of waits for input their share of step time against the target, and that its hosts have no room for more loaders;
--  else null
-- base_ms: what the loss is a share of: allocated time of the runs concerned, else the capacity of the cluster
-- run_share_ratio: the share of its allocated time that the run lost of which it took most; null where no run is concerned
-- the allocated time of a run counts once in the base of a row
with bases as (
    select
        parts.rule, parts.cluster, parts.node, parts.gpu_uuid, parts.run_key, parts.team,
        sum(parts.run_base_ms)::bigint as base_ms,
        max(parts.gpu_ms / parts.run_base_ms) as run_share_ratio
    from (
        select rule, cluster, node, gpu_uuid, run_key, of_run_key, team, run_base_ms, sum(gpu_ms) as gpu_ms
        from marts.loss_parts
        where run_base_ms > 0
        group by all
    ) as parts
    group by all
),

-- the jobs that ask for most and wait longest first
waiting as (
    select
        cluster,
        counted(count(*), 'job') || ' waiting: ' || array_to_string(
            list(
                -- of control characters and of those that turn the direction of text nothing is shown
                left(regexp_replace(coalesce(nullif(job_name, ''), 'job'), '\p{C}', '', 'g'), 40) || ' (' || job_id || ')'
                order by gpus * waited_s desc, job_run_key
            )[:3],
            ', '
        ) || case when count(*) > 3 then ' ...' else '' end as names
    from marts.waiting_jobs
    group by cluster
),

inputs as (
    select
        run_key,
        sum(gpu_ms) filter (where category = 'data_stall') / sum(gpu_ms) as wait_ratio,
        percent_text(wait_ratio) || ' of step time waits for input, '
        || if(wait_ratio < threshold('input_wait_ratio'), 'under', 'over') || ' the target of '
        || percent_text(threshold('input_wait_ratio')) as cause
    from marts.run_categories
    where category = 'data_stall' or is_kept_step(category) and category <> 'other_declared'
    group by run_key
    having wait_ratio > 0
),

full_hosts as (
    select
        owners.run_key,
        nullif(concat_ws(
            ' and ',
            case when count_if(cpu_busy_ratio >= threshold('starved_cpu_ratio')) >= threshold('host_min_bins') then 'cores' end,
            case
                when count_if(memory_used_ratio >= threshold('host_memory_full_ratio')) >= threshold('host_min_bins') then 'memory'
            end
        ), '') as full_parts
    from (select distinct cluster, node, job_run_key, start_ms from intermediate.int_held_bins where not is_starting)
    inner join intermediate.int_host_bins using (cluster, node, start_ms)
    inner join intermediate.int_job_run_owners as owners using (job_run_key)
    where owners.run_key in (select run_key from inputs)
    group by owners.run_key
)

select
    parts.rule,
    parts.cluster,
    parts.node,
    parts.gpu_uuid,
    parts.run_key,
    parts.team,
    min(parts.first_ms) as since_ms,
    max(parts.last_ms) as until_ms,
    max(parts.subject_ms) as subject_ms,
    sum(parts.gpu_ms)::bigint as gpu_ms,
    sum(parts.cost) as cost,
    coalesce(sum(parts.gpu_ms) filter (where parts.is_sure), 0)::bigint as sure_ms,
    count(distinct parts.case_key) as cases,
    coalesce(arg_max(parts.cause, parts.gpu_ms), any_value(waiting.names), any_value(inputs.cause)) as cause,
    coalesce(
        arg_max(parts.what_to_do, parts.gpu_ms),
        'Prefetch or cache the input, or move preprocessing off its hosts: their ' || any_value(full_hosts.full_parts)
        || ' have no room for more loader workers'
    ) as what_to_do,
    coalesce(any_value(bases.base_ms), any_value(parts.cluster_base_ms)) as base_ms,
    any_value(bases.run_share_ratio) as run_share_ratio
from marts.loss_parts as parts
left join waiting on parts.cluster = waiting.cluster and parts.rule = 'idle_with_demand'
left join inputs on parts.rule = 'input_stall' and parts.run_key = inputs.run_key
left join full_hosts on parts.rule = 'input_stall' and parts.run_key = full_hosts.run_key
left join bases
    on parts.rule = bases.rule
    and parts.cluster = bases.cluster
    and parts.node is not distinct from bases.node
    and parts.gpu_uuid is not distinct from bases.gpu_uuid
    and parts.run_key is not distinct from bases.run_key
    and parts.team is not distinct from bases.team
group by parts.rule, parts.cluster, parts.node, parts.gpu_uuid, parts.run_key, parts.team
