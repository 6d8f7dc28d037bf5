-- Use, energy and cost of each GPU model in the scope's window, from the hourly rollups: inputs of scenarios about
-- buying or capping GPUs. Scope: window, cluster, model.
-- grain: cluster, gpu_model
-- evaluated: first
-- window_ms: length of the scope's window for which the cluster has evidence
-- gpus: capacity / window: how many there were on average
-- capacity_ms, held_ms: milliseconds of a whole GPU
-- productive_ms: useful time: the numerator of goodput
-- unsettled_ms: of the allocated time, not classified by the evidence
-- energy_mj, measured_ms: millijoules of the GPUs, and the GPU time for which they are known
-- held_energy_mj, held_measured_ms: the same of allocated time
-- power_w, held_power_w: mean power over measured time, of all and of allocated time; null: not measured
-- power_limit_w: mean over the GPUs that report one
-- metered_mj_price: millijoules x US dollars per kWh at the tariffs of their hours; null: no tariff
-- tariffed_mj: the energy that has a tariff
-- priced_ms, ms_cost: all time with a price, and its milliseconds x price; null: no price
with windows as (
    select
        cluster,
        least(as_of_ms, coalesce(chosen_to_ms(), as_of_ms))
            - greatest(first_ms, coalesce(chosen_from_ms(), first_ms)) as window_ms
    from intermediate.int_clusters
),

lines as (
    select
        * replace (productive_ms + case when evaluation_counts() then other_use_ms else 0 end as productive_ms),
        line = 'usage' as is_held,
        price_per_gpu_h is not null as is_priced
    from marts.statement_lines
),

sums as (
    select
        cluster,
        gpu_model,
        sum(gpu_ms)::bigint as capacity_ms,
        coalesce(sum(gpu_ms) filter (where is_held), 0)::bigint as held_ms,
        sum(columns(['productive_ms', 'unsettled_ms', 'energy_mj', 'measured_ms']))::bigint,
        sum(energy_mj) filter (where is_held)::bigint as held_energy_mj,
        sum(measured_ms) filter (where is_held)::bigint as held_measured_ms,
        sum(metered_mj_price) as metered_mj_price,
        (sum(energy_mj) - sum(untariffed_mj))::bigint as tariffed_mj,
        coalesce(sum(gpu_ms) filter (where is_priced), 0)::bigint as priced_ms,
        sum(gpu_ms * price_per_gpu_h) as ms_cost
    from lines
    group by cluster, gpu_model
),

limits as (
    select cluster, gpu_model, avg(power_limit_w) as power_limit_w from staging.stg_gpus group by cluster, gpu_model
)

select
    sums.*,
    windows.window_ms,
    sums.capacity_ms / nullif(windows.window_ms, 0) as gpus,
    sums.energy_mj / nullif(sums.measured_ms, 0) as power_w,
    sums.held_energy_mj / nullif(sums.held_measured_ms, 0) as held_power_w,
    limits.power_limit_w
from sums
inner join windows using (cluster)
left join limits on sums.cluster = limits.cluster and sums.gpu_model is not distinct from limits.gpu_model
