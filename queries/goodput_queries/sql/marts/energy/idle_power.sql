-- What idle GPUs draw, by model and category: not allocated, not available, or allocated but idle. Power is the mean of
-- ten minutes in which the whole GPU was in the category and had a reading, whoever owns it; energy is that power over
-- the time of the scope in the category.
-- grain: cluster, gpu_model, category
-- evaluated: first
-- gpu_ms: milliseconds of a whole GPU in the category, of the scope's owners
-- measured_ms: of all owners, in the ten minutes that power_w is the mean of
-- power_w: of one GPU; null: no such ten minutes has a power reading
-- energy_kwh: gpu_ms x power_w; null: power_w is
-- electricity_cost: of that energy, at the tariffs of their hours with the overhead of server and site, as statements
--  charge counters; null: no hour has a tariff
-- untariffed_gpu_ms: of gpu_ms, in hours without a tariff
with idle as (
    select category, label
    from reference.gpu_second_categories
    where is_idle_category(category, "group")
),

times as (
    select
        scoped.cluster,
        scoped.gpu_model,
        scoped.category,
        sum(scoped.gpu_ms)::bigint as gpu_ms,
        sum(scoped.gpu_ms * tariffs.price_per_kwh::double) as ms_price,
        coalesce(sum(scoped.gpu_ms) filter (where tariffs.price_per_kwh is null), 0)::bigint as untariffed_gpu_ms
    from marts.ledger_scoped_by_node as scoped
    semi join idle using (category)
    left join marts.statement_tariffs as tariffs using (cluster, hour_ms)
    group by scoped.cluster, scoped.gpu_model, scoped.category
)

select
    times.* exclude (ms_price),
    idle.label,
    coalesce(powers.measured_ms, 0) as measured_ms,
    powers.power_w,
    times.gpu_ms * powers.power_w / 3.6e9 as energy_kwh,
    times.ms_price * powers.power_w / 3.6e9 as electricity_cost
from times
inner join idle using (category)
left join intermediate.int_idle_powers as powers
    on times.cluster = powers.cluster
    and times.gpu_model is not distinct from powers.gpu_model
    and times.category = powers.category
