-- The ledger of each run: one row a run and category; a run's rows add up to its allocated time in the window.
-- grain: run_key, category
-- evaluated: first
-- access: team
select
    scoped.run_key,
    scoped.category,
    any_value(categories.label) as label,
    any_value(categories.colour) as colour,
    any_value(kind_of(category, categories.kind)) as kind,
    sum(scoped.gpu_ms)::bigint as gpu_ms,
    sum(scoped.cost) as cost
from marts.ledger_scoped_by_node as scoped
inner join reference.gpu_second_categories as categories using (category)
where scoped.run_key is not null
group by scoped.run_key, scoped.category
