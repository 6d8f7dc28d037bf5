-- Goodput objectives of goodput.toml at the end of the scope's window, or of the evidence: what was attained over their days, the
-- error budget that is spent, and how fast it burns. The error budget is the share of GPU time that may be without use: 1 - target.
-- It is spent by time that is known to be of no use; unclassified time is separate. A burn rate of 1 spends the budget in exactly
-- the days of the objective. Whole hours; the days before the evidence begins are left out.
-- grain: name
-- access: team
-- evaluated: first
-- name: of the objective; team, cluster: what it is of; null: of all
-- target_ratio: least goodput; of the allocated time of a team, else of the capacity
-- from_at, to_at: time that is judged: the days of the objective, or from the begin of the evidence
-- covered_ratio: of the days of the objective, that there is evidence for
-- base_ms: allocated time or capacity; useful_ms: of it useful; unsettled_ms: not classified; milliseconds of a whole GPU
-- attained_ratio: useful / base; attained_hi_ratio: if all unclassified time was useful
-- spent_ms: of no use and classified
-- budget_spent_ratio: spent / budget, over 1: exhausted
-- burn_rate_1h, burn_rate_6h, burn_rate_24h, burn_rate_30d: share of time spent over (1 - target); null: no such
--  time, or the evidence begins later
-- fast_burn, slow_burn: burn rates over which the objective is a finding: at both 1 h and 6 h, at both 6 h and 24 h
-- is_burning: one of the two is exceeded
with objectives as (
    select unnest(
        from_json(
            coalesce(getvariable('goodput_objectives')::varchar, '[]'),
            '[{"name":"VARCHAR","team":"VARCHAR","cluster":"VARCHAR","target_ratio":"DOUBLE","window_ms":"BIGINT"}]'
        ),
        recursive := true
    )
),

wanted as (
    select *
    from objectives
    where
        coalesce(
            chosen_node(), chosen_gpu_uuid(), chosen_gpu_model(), chosen_user(),
            chosen_run(), chosen_partition()
        ) is null
        and of_teams(team)
        and in_team(team)
        and (chosen_cluster() is null or coalesce(cluster, chosen_cluster()) = chosen_cluster())
),

spans as (
    select
        wanted.*,
        min(clusters.first_ms) as first_ms,
        -- the last whole hour: of the one that goes on little is known
        scope_end(max(clusters.as_of_ms)) // one_hour_ms() * one_hour_ms() as to_ms
    from wanted
    inner join intermediate.int_clusters as clusters on wanted.cluster is null or wanted.cluster = clusters.cluster
    group by all
),

hours as (
    select
        hourly.cluster,
        owners.team,
        hourly.hour_ms,
        sum(hourly.gpu_ms) as gpu_ms,
        coalesce(sum(hourly.gpu_ms) filter (where categories.group = 'held'), 0) as held_ms,
        coalesce(sum(hourly.gpu_ms) filter (where is_useful(hourly.category)), 0) as useful_ms,
        coalesce(sum(hourly.gpu_ms) filter (where is_unsettled(hourly.category)), 0) as unsettled_ms
    from marts.ledger_hourly_by_node as hourly
    inner join reference.gpu_second_categories as categories using (category)
    left join intermediate.int_job_run_owners as owners using (job_run_key)
    where
        hourly.hour_ms < (select max(to_ms) from spans)
        and hourly.hour_ms >= (select min(to_ms - greatest(window_ms, 2592000000)) from spans)
    group by hourly.cluster, owners.team, hourly.hour_ms
),

matched as (
    select
        spans.name,
        hours.hour_ms,
        sum(case when spans.team is null then hours.gpu_ms else hours.held_ms end) as base_ms,
        sum(hours.useful_ms) as useful_ms,
        sum(hours.unsettled_ms) as unsettled_ms,
        sum(case when spans.team is null then hours.gpu_ms else hours.held_ms end - hours.useful_ms - hours.unsettled_ms)
            as lost_ms
    from spans
    inner join hours
        on (spans.team is null or spans.team = hours.team)
        and (spans.cluster is null or spans.cluster = hours.cluster)
        and hours.hour_ms < spans.to_ms
    group by spans.name, hours.hour_ms
),

sums as (
    select
        spans.*,
        sum(matched.base_ms) filter (where matched.hour_ms >= spans.to_ms - spans.window_ms) as base_ms,
        sum(matched.useful_ms) filter (where matched.hour_ms >= spans.to_ms - spans.window_ms) as useful_ms,
        sum(matched.unsettled_ms) filter (where matched.hour_ms >= spans.to_ms - spans.window_ms) as unsettled_ms,
        sum(matched.lost_ms) filter (where matched.hour_ms >= spans.to_ms - spans.window_ms) as lost_ms,
        lost_share_from(spans.to_ms - one_hour_ms(), matched.hour_ms, matched.base_ms, matched.lost_ms) as lost_1h,
        lost_share_from(spans.to_ms - 21600000, matched.hour_ms, matched.base_ms, matched.lost_ms) as lost_6h,
        lost_share_from(spans.to_ms - one_day_ms(), matched.hour_ms, matched.base_ms, matched.lost_ms) as lost_24h,
        lost_share_from(spans.to_ms - 2592000000, matched.hour_ms, matched.base_ms, matched.lost_ms) as lost_30d
    from spans
    left join matched using (name)
    group by spans.name, spans.team, spans.cluster, spans.target_ratio, spans.window_ms, spans.first_ms, spans.to_ms
),

burnt as (
    select
        *,
        greatest(to_ms - window_ms, first_ms) as from_ms,
        (1 - target_ratio) * base_ms as budget_ms,
        case when first_ms <= to_ms - one_hour_ms() then lost_1h / (1 - target_ratio) end as burn_rate_1h,
        case when first_ms <= to_ms - 21600000 then lost_6h / (1 - target_ratio) end as burn_rate_6h,
        case when first_ms <= to_ms - one_day_ms() then lost_24h / (1 - target_ratio) end as burn_rate_24h,
        case when first_ms <= to_ms - 2592000000 then lost_30d / (1 - target_ratio) end as burn_rate_30d,
        -- without any use the rate is 1 / (1 - target): of a low target the limits are never reached
        least(threshold('objective_fast_burn'), 1 + threshold('objective_burn_share') * (1 / (1 - target_ratio) - 1))
            as fast_burn,
        least(threshold('objective_slow_burn'), 1 + threshold('objective_burn_share') * (1 / (1 - target_ratio) - 1))
            as slow_burn
    from sums
)

select
    name,
    team,
    cluster,
    target_ratio,
    from_ms(from_ms) as from_at,
    from_ms(to_ms) as to_at,
    (to_ms - from_ms) / window_ms as covered_ratio,
    coalesce(columns(['base_ms', 'useful_ms', 'unsettled_ms']), 0)::bigint,
    goodput_ratio(useful_ms, base_ms) as attained_ratio,
    goodput_hi_ratio(useful_ms, unsettled_ms, base_ms) as attained_hi_ratio,
    definition_version() as definition_version,
    coalesce(lost_ms, 0)::bigint as spent_ms,
    lost_ms / nullif(budget_ms, 0) as budget_spent_ratio,
    burn_rate_1h,
    burn_rate_6h,
    burn_rate_24h,
    burn_rate_30d,
    fast_burn,
    slow_burn,
    coalesce(burn_rate_1h >= fast_burn and burn_rate_6h >= fast_burn, false)
    or coalesce(burn_rate_6h >= slow_burn and burn_rate_24h >= slow_burn, false) as is_burning
from burnt
