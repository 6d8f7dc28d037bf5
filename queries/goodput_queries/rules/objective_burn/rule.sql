-- of the whole database: none where the scope is a part of it
-- skip_if_empty: marts.goodput_objectives
select
    null as cluster,
    name as detail,
    to_at - to_hours(case when burn_rate_24h >= slow_burn and burn_rate_6h >= slow_burn then 24 else 6 end) as start_at,
    null as end_at,
    'Confirmed' as confidence,
    format('burn rate {:.1f} over 6 h', burn_rate_6h)
        || coalesce(format(', {:.1f} over 1 h', burn_rate_1h), '')
        || coalesce(format(', {:.1f} over 24 h', burn_rate_24h), '')
        || '; goodput ' || percent_text(attained_ratio) || ' of ' || percent_text(target_ratio) || ' wanted, '
        || percent_text(budget_spent_ratio) || ' of the error budget is spent' as evidence
from marts.goodput_objectives
where is_burning and is_whole_fleet()
