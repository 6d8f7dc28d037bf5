-- What snapshots of nodes show: settings that differ, and settings that are known to do harm.
-- grain: rule, cluster, node, run_key
-- access: team
-- skip_if_empty: raw.node_settings
-- rule: node_settings_differ, node_misconfigured, fabric_manager_down (a node), job_settings_differ, job_misconfigured (a run)
-- node: null: several of the run
-- confidence: Confirmed for what snapshots say; Likely where it is the harm that counts
-- evidence: the settings, at most four
with settings as materialized (
    select * from marts.node_settings where is_different or problem is not null
),

-- a node that differs from its model is one finding, not one of each of its runs
found as (
    select
        case
            when problem is null then if(run_key is null, 'node_settings_differ', 'job_settings_differ')
            when run_key is not null then 'job_misconfigured'
            when setting = 'fabric.manager' then 'fabric_manager_down'
            else 'node_misconfigured'
        end as rule,
        case when run_key is null or problem is null and usual_value is not null then node end as on_node,
        *
    from settings
    where
        run_key is null
        or problem is not null and belongs_to = 'process'
        or problem is null and (cluster, node, setting) not in (
            select (cluster, node, setting) from settings where run_key is null
        )
    -- without a usual value it takes two to differ
    qualify
        run_key is null
        or problem is not null
        or usual_value is not null
        or min(value) over (partition by run_key, setting) <> max(value) over (partition by run_key, setting)
),

-- from the start of the job to its first step, of attempts on nodes that unload the driver
starts as (
    select cluster, node, median(first_ms - start_ms) / 1000 as start_s, count(*) as attempts
    from (select attempt_key, min(start_ms) as first_ms from intermediate.int_train_steps group by attempt_key)
    inner join intermediate.int_attempts as attempts using (attempt_key)
    inner join (select distinct cluster, node, job_run_key from intermediate.int_holds) using (cluster, job_run_key)
    where node in (select node from found where setting = 'gpu.persistence') and in_window(first_ms, first_ms + 1)
    group by cluster, node
),

of_values as (
    select
        rule,
        found.cluster,
        on_node as node,
        run_key,
        min(taken_at) as start_at,
        max(until_at) as end_at,
        setting || ' is ' || value
        || case
            when on_node is not null then ''
            when count(*) = 1 then ' on ' || any_value(found.node)
            else ' on ' || counted(count(*), 'node')
        end
        || case when bool_or(is_different) then coalesce(', elsewhere ' || any_value(usual_value), '') else '' end
        || coalesce(': ' || any_value(problem), '')
        || coalesce(
            printf(
                '; from its start to the first step %s took %.1f s (median)',
                counted(any_value(starts.attempts), 'attempt'), any_value(starts.start_s)
            ),
            ''
        ) as text
    from found
    left join starts on setting = 'gpu.persistence' and found.cluster = starts.cluster and on_node = starts.node
    group by rule, found.cluster, on_node, run_key, setting, value
),

listed as (
    select
        rule, cluster, node, run_key, min(start_at) as start_at, max(end_at) as end_at,
        list_sort(list(replace(text, 'env:', ''))) as texts
    from of_values
    group by rule, cluster, node, run_key
)

select
    * exclude (texts),
    null::varchar as gpu_uuid,
    null::bigint as gpu_ms,
    null::double as cost,
    case when rule in ('node_misconfigured', 'job_misconfigured') then 'Likely' else 'Confirmed' end as confidence,
    array_to_string(texts[:4], '; ')
    || case when len(texts) > 4 then '; and ' || len(texts) - 4 || ' more' else '' end as evidence
from listed
where run_key is not null or of_owner(null, null, null, null)
