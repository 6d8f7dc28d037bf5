-- What snapshots of nodes show: settings that differ, and settings that are known to do harm.
-- grain: rule, cluster, node, run_key
-- access: team
-- evaluated: first
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
        case when run_key is null then 'node_settings_differ' else 'job_settings_differ' end as rule,
        case when run_key is null or usual_value is not null then node end as on_node,
        setting || ' is ' || coalesce(
            value || ', elsewhere ' || usual_value, string_agg(value, ' or ') over (partition by run_key, setting)
        ) as what,
        *
    from settings
    where
        is_different
        and (
            run_key is null
            or (cluster, node, setting) not in (
                select (cluster, node, setting) from settings where run_key is null and is_different
            )
        )
    union all by name
    select
        case
            when run_key is not null then 'job_misconfigured'
            when setting = 'fabric.manager' then 'fabric_manager_down'
            else 'node_misconfigured'
        end as rule,
        case when run_key is null then node end as on_node,
        setting || ' is ' || value || ': ' || problem as what,
        *
    from settings
    where problem is not null and (run_key is null or belongs_to = 'process')
),

listed as (
    select
        rule,
        cluster,
        on_node as node,
        run_key,
        min(taken_at) as start_at,
        max(until_at) as end_at,
        count(distinct node) as nodes,
        list_sort(list(distinct replace(what, 'env:', ''))) as texts
    from found
    group by rule, cluster, on_node, run_key
)

select
    rule,
    cluster,
    node,
    null::varchar as gpu_uuid,
    run_key,
    start_at,
    end_at,
    null::bigint as gpu_ms,
    null::double as cost,
    case when rule in ('node_misconfigured', 'job_misconfigured') then 'Likely' else 'Confirmed' end as confidence,
    array_to_string(texts[:4], '; ')
    || case when len(texts) > 4 then '; and ' || len(texts) - 4 || ' more' else '' end
    || case when node is null then ' (on ' || counted(nodes, 'node') || ')' else '' end as evidence
from listed
where run_key is not null or of_owner(null, null, null, null)
