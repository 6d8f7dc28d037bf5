-- What the scope's GPUs lose at the end of the window, or of the evidence where that ends before, and what an hour of it
-- costs.
-- grain: cluster, category
-- access: team
-- gpus: GPUs in the category, shares of a GPU as their share
-- cost_per_h: at the price of that hour; null where the rate card has no price
select
    states.cluster,
    states.category,
    any_value(categories.label) as label,
    any_value(categories.colour) as colour,
    sum(states.share_ratio) as gpus,
    sum(states.share_ratio * prices.price_per_gpu_h::double) as cost_per_h
from marts.unit_states as states
inner join reference.gpu_second_categories as categories using (category)
left join intermediate.int_job_run_owners as owners using (job_run_key)
left join intermediate.int_prices as prices on is_price_of(
    prices, states.cluster, states.gpu_model, states.mig_profile, owners.partition, owners.qos,
    states.at_ms - 1, states.at_ms
)
where
    categories.kind in ('badput', 'unavailable')
    and of_owner(owners.team, owners.user_name, owners.run_key, owners.partition)
group by states.cluster, states.category
