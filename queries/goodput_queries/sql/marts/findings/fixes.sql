-- What to do first: the findings of the scope by what is to be done about them and to what, with the recoverable GPU time.
-- Ordered by back_cost, then back_ms, where a list is shown. Dismissed findings are left out. Each GPU-millisecond of a loss is in one finding only, so that the rows add up.
-- grain: fix, cluster, target
-- access: team
-- evaluated: first
-- target: the node, the job of a team, the cluster or the source that it is done to
-- findings: how many it settles; open_findings: of them those that still are
-- title, what_to_do, evidence, rule, finding_key, run_key, node, gpu_uuid, owner, effort: of the open finding whose action reaches furthest
--  (replace, restart the node, drain), then of the largest one whose action gives most back
-- gpu_ms, cost: lost in the window; of anomalies that is in other rows
-- back_ms, back_low_ms, back_high_ms: recoverable GPU time of the window
-- back_cost, back_low_cost, back_high_cost: what it costs; null where the rate card has no price
-- is_recurrent: its losses have two cases or more, or one goes on and is no incident
-- back_week_ms, back_week_cost: at the rate of the window's covered time; null under an hour of it, and of what is not recurrent
select
    fix,
    cluster,
    target,
    count(*) as findings,
    count_if(is_open)::bigint as open_findings,
    arg_min(severity, severity_rank(severity)) as severity,
    unnest(arg_max(first, place)),
    coalesce(sum(gpu_ms) filter (where back_high_ms > 0), 0)::bigint as gpu_ms,
    sum(cost) filter (where back_high_ms > 0) as cost,
    sum(columns(['back_ms', 'back_low_ms', 'back_high_ms']))::bigint,
    sum(columns(['back_cost', 'back_low_cost', 'back_high_cost'])),
    coalesce(sum(lost_cases) >= 2 or bool_or(goes_on), false) as is_recurrent,
    case when is_recurrent then round(sum(back_ms) * any_value(week_ratio))::bigint end as back_week_ms,
    case when is_recurrent then sum(back_cost) * any_value(week_ratio) end as back_week_cost
from (
    select
        * exclude (is_recurrent),
        case when back_high_ms > 0 then cases end as lost_cases,
        is_recurrent and back_high_ms > 0 as goes_on,
        {
            title: title, what_to_do: what_to_do, evidence: evidence, rule: rule, finding_key: finding_key,
            since_at: since_at, run_key: run_key, node: node, gpu_uuid: gpu_uuid, confidence: confidence,
            owner: owner, effort: effort
        } as first,
        (
            case when is_open then -action_rank(what_to_do) else -3 end,
            sum(back_ms) over (partition by fix, cluster, target, what_to_do),
            back_ms, coalesce(gpu_ms, 0), -severity_rank(severity), -action_rank(what_to_do), finding_key
        ) as place
    from marts.findings
    where state <> 'dismissed'
)
group by fix, cluster, target
