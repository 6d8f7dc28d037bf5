-- Builds that were not published, sources that do not answer, contradictions and gaps of the evidence, and objectives whose error budget burns fast, as findings: of
-- the whole database, and none where the scope is a part of it.
-- grain: rule, detail
-- evaluated: first
-- detail: the source, what is wrong, the invariant, or the objective
select
    'source_failing' as rule,
    null::varchar as cluster,
    source || ' ' || origin as detail,
    epoch_ms(coalesce(failing_since_at, answered_at)) as since_ms,
    null::bigint as until_ms,
    null::bigint as gpu_ms,
    case when state = 'late' then 'info' else 'warning' end as severity,
    'Confirmed' as confidence,
    source || ' at ' || left(origin, 120) || ' is ' || state || case
        when failures > 0 then ' (' || counted(failures, 'failure') || ' in a row)' else ''
    end as evidence,
    null::varchar as what_to_do
from marts.live_sources
where state in ('late', 'stale', 'failing') and is_whole_fleet()
union all
select
    'evidence_conflict',
    null,
    kind || ': ' || what,
    scope_start((select min(first_ms) from intermediate.int_clusters)),
    scope_end((select max(as_of_ms) from intermediate.int_clusters)),
    null,
    'info',
    'Confirmed',
    what || ': ' || counted(n, 'case') || coalesce(', for example ' || left(example, 120), ''),
    what_to_do
from marts.data_quality
where
    is_whole_fleet()
    and what_to_do is not null
    -- a time range without data has no findings; evidence without a cluster has no time
    and (select coalesce(bool_or(in_window(first_ms, as_of_ms)), true) from intermediate.int_clusters)
union all
select
    'build_refused',
    null,
    invariant,
    epoch_ms(refused_at),
    null,
    null,
    'critical',
    'Confirmed',
    counted(n, 'case') || ', for example ' || example,
    null
from state.refused_builds
where is_whole_fleet()
union all
select
    'objective_burn',
    null,
    name,
    epoch_ms(to_at) - case when burn_rate_24h >= slow_burn and burn_rate_6h >= slow_burn then 86400000 else 21600000 end,
    null,
    null,
    'warning',
    'Confirmed',
    format('burn rate {:.1f} over 6 h', burn_rate_6h)
        || coalesce(format(', {:.1f} over 1 h', burn_rate_1h), '')
        || coalesce(format(', {:.1f} over 24 h', burn_rate_24h), '')
        || '; goodput ' || percent_text(attained_ratio) || ' of ' || percent_text(target_ratio) || ' wanted, '
        || percent_text(budget_spent_ratio) || ' of the error budget is spent',
    null
from marts.goodput_objectives
where is_burning and is_whole_fleet()
