-- What the scope lost (badput), by team, group of categories and cause. The rows add up to wasted_ms and wasted_cost of
-- marts.goodput_summary; the difference of two windows is what moved.
-- grain: team, ledger_group, blame
-- evaluated: first
-- access: team
-- team: null: of no team, as unallocated time is
-- ledger_group, label: one of the nine groups of reference.ledger_groups
-- blame: own (caused by the team), platform (by the infrastructure), unallocated, reservation
-- cost: null where no part of it has a price
select
    blamed.team,
    groups.ledger_group,
    any_value(groups.label) as label,
    blamed.blame,
    sum(blamed.gpu_ms)::bigint as gpu_ms,
    sum(blamed.cost) as cost
from marts.ledger_blamed_by_node as blamed
inner join reference.gpu_second_categories as categories using (category)
inner join reference.ledger_groups as groups using (category)
where categories.kind = 'badput'
group by blamed.team, groups.ledger_group, blamed.blame
