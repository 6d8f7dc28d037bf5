-- Findings of the scope: losses, faults and anomalies that are worth a person's look, by the rules of
-- reference.finding_rules; the largest first by cost, then GPU time.
-- grain: finding_key, since_at
-- access: team
-- evaluated: first
-- finding_key: the same for one rule and subject as long as both exist; state.finding_actions refers to it
-- severity: page, ticket, note, by what it does (effect) and whether it is open: severity_when and note_below of the rule
-- open_severity: while it was open
-- effect: null: the severity is that of the rule, or its loss is small
-- kind, title, owner, effort, fix: of the rule
-- since_at, until_at: first and last evidence inside the window; until_at null: it is still so
-- is_open: seen in the half hour before the end of the evidence, and nothing newer shows that it has ended
-- state: open, closed, acknowledged, dismissed (what people said of it), note: their last words
-- subject: what it is about, to be read; node, gpu_uuid, gpu_index, run_key, run_name: null where it is about none
-- gpu_ms, cost: GPU time concerned in the window; null: not a time
-- share_ratio: of the allocated time of its run, or of the capacity
-- cases: attempts concerned, or how often it was seen
-- back_ms, back_low_ms, back_high_ms: recoverable GPU time of the window; parts of findings never overlap
-- back_cost, back_low_cost, back_high_cost: what it costs; null where the rate card has no price
-- is_recurrent: of two cases or more, or it goes on and is no incident; what happened once says nothing of a week
-- week_ratio: a week in lengths of the window's covered time; null under an hour of it
-- week_cost, back_week_ms, back_week_cost: at that rate; null of what is not recurrent
-- confidence: Confirmed, Likely, Not confirmed; evidence: in a sentence; what_to_do: for it
-- right_count, total_count: of findings of the rule with this confidence that tests could judge, those that were right; null: none
-- accepted, dismissed: findings of the rule by the last word of people; null: nobody answered, or the reader sees some teams alone
-- target: what its fix is applied to: a node, jobs of a team that are named alike, a cluster
-- what a loss explains is one finding with it (merged_into of the rule): GPUs that are never active are idle, and so are those of
-- engines without a request; a node that is down is not read; gaps between steps may have a period
with rule_findings as materialized (select * from marts.rule_findings),

loss_findings as materialized (select * from marts.loss_findings),

pauses as (
    select run_key, sum(gpu_ms)::bigint as gpu_ms, sum(cost) as cost
    from marts.ledger_blamed_by_node
    where
        category = 'idle_held'
        and phase = 'pause'
        and run_key in (select run_key from rule_findings where rule = 'periodic_gaps')
    group by run_key
),

explained as (
    select
        signs.* exclude (effect, is_over, cost, confidence, cause, what_to_do, team, until_ms),
        {rule: losses.rule, cluster: losses.cluster, node: losses.node, gpu_uuid: losses.gpu_uuid, run_key: losses.run_key} as loss,
        case when merges.merge.is_cause then coalesce(signs.what_to_do, merges.action) end as what_to_do
    from rule_findings as signs
    inner join (
        select rule, action, unnest(merged_into) as merge from reference.finding_rules
    ) as merges on signs.rule = merges.rule
    inner join loss_findings as losses
        on merges.merge.rule = losses.rule
        and signs.cluster = losses.cluster
    left join pauses on signs.rule = 'periodic_gaps' and signs.run_key = pauses.run_key
    where
        case merges.merge.same
            when 'run'
                then signs.run_key = losses.run_key and 2 * (losses.gpu_ms + coalesce(pauses.gpu_ms, 0)) >= signs.gpu_ms
            when 'GPU' then signs.run_key = losses.run_key and signs.gpu_uuid = losses.gpu_uuid
            else signs.node = losses.node
                and 2 * (
                    least(coalesce(signs.until_ms, losses.until_ms), losses.until_ms)
                    - greatest(signs.since_ms, losses.since_ms)
                ) >= coalesce(signs.until_ms, losses.until_ms) - greatest(signs.since_ms, scope_start(signs.since_ms))
        end
),

-- a pause that comes back is no pause: what the regular gaps of a run have of its pauses
regular as (
    select
        gaps.run_key,
        gaps.gpu_ms as gaps_ms,
        losses.run_key is not null as is_of_loss,
        least(pauses.gpu_ms, greatest(0, gaps.gpu_ms - coalesce(losses.gpu_ms, 0)))::bigint as gpu_ms,
        pauses.cost * least(pauses.gpu_ms, greatest(0, gaps.gpu_ms - coalesce(losses.gpu_ms, 0))) / pauses.gpu_ms as cost
    from (
        select run_key, sum(gpu_ms) as gpu_ms from rule_findings where rule = 'periodic_gaps' group by run_key
    ) as gaps
    inner join pauses using (run_key)
    left join loss_findings as losses
        on gaps.run_key = losses.run_key and losses.rule = 'gaps_between_steps'
),

signs as (
    select
        losses.rule, losses.cluster, losses.node, losses.gpu_uuid, losses.run_key, losses.team,
        case when losses.run_key is null then coalesce(losses.team, '') else '' end as detail,
        losses.since_ms, losses.until_ms,
        losses.gpu_ms + coalesce(regular.gpu_ms, 0) as gpu_ms,
        losses.cost + coalesce(regular.cost, 0) as cost,
        losses.share_ratio * (losses.gpu_ms + coalesce(regular.gpu_ms, 0)) / losses.gpu_ms as share_ratio,
        losses.cases,
        losses.back_ms + coalesce(regular.gpu_ms, 0) as back_ms,
        losses.back_low_ms,
        losses.back_high_ms + coalesce(regular.gpu_ms, 0) as back_high_ms,
        losses.is_over, losses.confidence, null::varchar as evidence,
        nullif(concat_ws('; ', losses.cause, signs.evidence), '') as cause,
        coalesce(signs.what_to_do, losses.what_to_do) as what_to_do
    from loss_findings as losses
    left join (
        select loss, arg_max(evidence, since_ms) as evidence, arg_max(what_to_do, since_ms) as what_to_do
        from explained
        group by loss
    ) as signs
        on losses.rule = signs.loss.rule
        and losses.cluster = signs.loss.cluster
        and losses.node is not distinct from signs.loss.node
        and losses.gpu_uuid is not distinct from signs.loss.gpu_uuid
        and losses.run_key is not distinct from signs.loss.run_key
    left join regular on losses.rule = 'gaps_between_steps' and losses.run_key = regular.run_key
    union all by name
    select
        found.*,
        (regular.gpu_ms * found.gpu_ms / regular.gaps_ms)::bigint as back_ms,
        (regular.gpu_ms * found.gpu_ms / regular.gaps_ms)::bigint as back_high_ms
    from rule_findings as found
    anti join explained
        on found.rule = explained.rule
        and found.since_ms = explained.since_ms
        and found.cluster = explained.cluster
        and found.node is not distinct from explained.node
        and found.gpu_uuid is not distinct from explained.gpu_uuid
        and found.run_key is not distinct from explained.run_key
        and found.detail = explained.detail
    left join regular
        on found.rule = 'periodic_gaps' and found.run_key = regular.run_key and not regular.is_of_loss
),

known as (
    select
        clusters.*,
        scope_end(clusters.as_of_ms) as ends_ms,
        greatest(0, scope_end(clusters.as_of_ms) - scope_start(clusters.first_ms)) as covered_ms,
        units.gpus
    from intermediate.int_clusters as clusters
    left join (
        select cluster, count(distinct gpu_uuid) as gpus from intermediate.int_gpu_units group by cluster
    ) as units using (cluster)
),

judged as (
    select
        signs.*,
        not coalesce(signs.is_over, false)
        and coalesce(
            signs.until_ms is null or signs.until_ms >= known.ends_ms - threshold('finding_rest_ms'), true
        ) as is_open,
        coalesce(signs.gpu_ms < rules.note_below_ms, false)
        -- what its cluster had until then, so that it does not fall with the age of the evidence
        and coalesce(
            signs.gpu_ms < nullif(rules.note_below_share, 0) * known.gpus
            * (coalesce(signs.until_ms, known.as_of_ms) - known.first_ms),
            true
        ) as is_small
    from signs
    inner join reference.finding_rules as rules using (rule)
    left join known using (cluster)
),

rated as (
    select
        judged.*,
        open_severity_rank(rules.severity, rules.severity_when, judged.effect, judged.is_small) as open_rank,
        case
            when judged.is_open then open_rank
            else closed_severity_rank(open_rank, rules.severity_when, judged.is_small)
        end as severity_rank
    from judged
    inner join reference.finding_rules as rules using (rule)
),

marked as (
    select
        *,
        coalesce(
            since_ms - max(coalesce(until_ms, forever_ms())) over (
                of_subject rows between unbounded preceding and 1 preceding
            ) > threshold('finding_rest_ms'),
            true
        ) as is_new
    from rated
    window of_subject as (
        partition by rule, cluster, node, gpu_uuid, run_key, detail order by since_ms, until_ms
    )
),

numbered as (
    select
        *,
        count_if(is_new) over (
            -- of rows of one time the one that begins the episode comes first
            partition by rule, cluster, node, gpu_uuid, run_key, detail order by since_ms, until_ms, is_new desc
            rows unbounded preceding
        ) as episode
    from marked
),

merged as (
    select
        rule, cluster, node, gpu_uuid, run_key, detail,
        min(since_ms) as since_ms,
        nullif(max(coalesce(until_ms, forever_ms())), forever_ms()) as until_ms,
        sum(columns(['gpu_ms', 'back_ms', 'back_low_ms', 'back_high_ms']))::bigint,
        sum(cost) as cost,
        max(share_ratio) as share_ratio,
        coalesce(sum(cases), count(*))::bigint as cases,
        bool_or(is_open) as is_open,
        severity_of_rank(min(open_rank)) as open_severity,
        -- of equal ones by name, so that two builds say the same
        arg_min(
            {severity: severity_of_rank(severity_rank), effect: effect},
            (not is_open, severity_rank, -since_ms, effect is null, coalesce(effect, ''))
        ) as rated,
        string_agg(distinct cause, '; ' order by cause) as cause,
        arg_max(
            {confidence: confidence, evidence: evidence, what_to_do: what_to_do, team: team},
            (evidence is not null, is_open, -severity_rank, since_ms, coalesce(evidence, ''), coalesce(team, ''))
        ) as worst
    from numbered
    group by rule, cluster, node, gpu_uuid, run_key, detail, episode
),

runs as (
    select
        run_key,
        any_value(run_id) as run_id,
        arg_max(job_name, attempt) as job_name,
        any_value(team) as team,
        coalesce(max(numbered_run_name(run_id, job_id, job_name)), any_value(run_id)) as run_name
    from intermediate.int_attempts
    where of_teams(team)
    group by run_key
),

gpus as (
    select gpu_uuid, max(gpu_index) as gpu_index, arg_max(node, start_ms) as node
    from intermediate.int_gpu_units
    group by gpu_uuid
),

said as (
    select
        merged.rule, merged.cluster, merged.node, merged.gpu_uuid, merged.run_key, merged.detail, merged.since_ms,
        max(actions) as last, max(actions) filter (where actions.action <> 'note') as answer
    from merged
    inner join (
        select finding_key, since_ms, until_ms, {said_at: said_at, action: action, note: note, said_by: said_by} as actions
        from state.finding_actions
    ) as actions
        on finding_key(merged.rule, merged.cluster, merged.node, merged.gpu_uuid, merged.run_key, merged.detail)
            = actions.finding_key
        and actions.since_ms <= coalesce(merged.until_ms, forever_ms())
        and coalesce(actions.until_ms, forever_ms()) >= merged.since_ms
    group by all
),

described as (
    select
        merged.*,
        rules.kind,
        rules.title,
        rules.owner,
        rules.effort,
        rules.fix,
        rules.page,
        tested_confidence(merged.worst.confidence, rules.right_ratio) as confidence,
        coalesce(merged.node, gpus.node) as at_node,
        gpus.gpu_index,
        runs.run_name,
        coalesce(merged.worst.team, runs.team) as team,
        coalesce(
            merged.worst.what_to_do, case when not merged.is_open then nullif(rules.action_after, '') end, rules.action
        ) as what_to_do,
        case when known.covered_ms >= threshold('finding_week_min_ms') then 604800000 / known.covered_ms end as week_ratio,
        merged.cases >= 2 or (merged.is_open and rules.kind not in ('failures', 'hangs', 'health')) as is_recurrent,
        said.last as said, said.answer.action as answer,
        case rules.target
            when 'node' then coalesce(merged.node, gpus.node, runs.job_name, merged.run_key)
            when 'job'
                then concat_ws(
                    ' / ',
                    coalesce(runs.team, merged.worst.team),
                    -- names of a family of jobs differ by a number
                    coalesce(
                        nullif(regexp_replace(runs.job_name, '[-_. ]+[a-z]?[0-9]+$', ''), ''), runs.run_id, merged.node
                    )
                )
            when 'cluster' then merged.cluster
            else merged.detail
        end as target
    from merged
    inner join reference.finding_rules as rules using (rule)
    left join runs on merged.run_key = runs.run_key
    left join gpus on merged.gpu_uuid = gpus.gpu_uuid
    left join known on merged.cluster = known.cluster
    left join said
        on merged.rule = said.rule
        and merged.cluster is not distinct from said.cluster
        and merged.node is not distinct from said.node
        and merged.gpu_uuid is not distinct from said.gpu_uuid
        and merged.run_key is not distinct from said.run_key
        and merged.detail is not distinct from said.detail
        and merged.since_ms = said.since_ms
)

select
    finding_key(rule, cluster, node, gpu_uuid, run_key, detail) as finding_key,
    rule,
    kind,
    rated.severity as severity,
    open_severity,
    rated.effect as effect,
    title,
    concat_ws(
        ', ',
        run_name,
        at_node,
        case when gpu_uuid is not null then 'GPU ' || coalesce(gpu_index::varchar, gpu_uuid) end,
        nullif(case when run_key is null and at_node is null then detail else '' end, ''),
        case when run_key is null and at_node is null and gpu_uuid is null and detail = '' then cluster end
    ) as subject,
    cluster,
    at_node as node,
    gpu_uuid,
    gpu_index,
    run_key,
    run_name,
    team,
    from_ms(since_ms) as since_at,
    from_ms(until_ms) as until_at,
    is_open,
    case
        when answer = 'acknowledge' then 'acknowledged'
        when answer = 'dismiss' then 'dismissed'
        when is_open then 'open'
        else 'closed'
    end as state,
    -- what was noted of a node or a cluster may be of another team
    case when of_teams(team) then said.note end as note,
    case when of_teams(team) then said.said_by end as said_by,
    gpu_ms,
    cost,
    share_ratio,
    cases,
    coalesce(columns(['back_ms', 'back_low_ms', 'back_high_ms']), 0),
    cost * coalesce(back_ms, 0) / nullif(gpu_ms, 0) as back_cost,
    cost * coalesce(back_low_ms, 0) / nullif(gpu_ms, 0) as back_low_cost,
    cost * coalesce(back_high_ms, 0) / nullif(gpu_ms, 0) as back_high_cost,
    is_recurrent,
    week_ratio,
    case when is_recurrent then cost * week_ratio end as week_cost,
    case when is_recurrent then round(coalesce(back_ms, 0) * week_ratio)::bigint end as back_week_ms,
    case when is_recurrent then cost * coalesce(back_ms, 0) / nullif(gpu_ms, 0) * week_ratio end as back_week_cost,
    described.confidence as confidence,
    rates.right_count,
    rates.total_count,
    answers.accepted,
    answers.dismissed,
    coalesce(
        worst.evidence,
        loss_evidence(kind, run_key, gpu_uuid, gpu_ms, share_ratio, cases, cause),
        cause
    ) as evidence,
    what_to_do,
    fix,
    target,
    owner,
    effort,
    page
from described
left join reference.finding_rates as rates using (rule, confidence)
left join marts.rule_answers as answers using (rule)
