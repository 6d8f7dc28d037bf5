-- Work of the scope's runs in its window for their time, cost and energy, by GPU model: of all workloads, and of each with the
-- class of its price. Runs on several models are under all their names.
-- grain: gpu_model, price_class, workload, work_unit
-- access: team
-- is_total: of all workloads and classes, whose columns are null; price_class: of the rate card's most specific row that names one
-- work_unit: tokens or samples; runs: that report work; held_ms: their allocated time; work: of steps that were not lost
-- work_per_gpu_s: over all allocated time; work_per_cost: in a unit of the rate card's currency; work_per_kj: of the GPUs' energy; the
--  last two over the runs whose cost, or energy, is known
-- ceiling_held_ms: of the runs with a ceiling (marts.run_ceilings); throughput_goodput_ratio, goodput_ratio: by throughput and by time,
--  of these runs
with classes as (
    select
        owners.run_key,
        arg_max(cards.price_class, ((cards.qos is not null)::integer, (cards.partition is not null)::integer, cards.from_ms))
            as price_class
    from intermediate.int_job_run_owners as owners
    inner join marts.run_gpu_models as models using (run_key)
    inner join intermediate.int_job_runs as jobs using (job_run_key)
    inner join staging.stg_rate_card as cards
        on (cards.cluster is null or cards.cluster = owners.cluster)
        and (cards.gpu_model is null or is_model(models.gpu_models, cards.gpu_model))
        and (cards.partition is null or cards.partition = owners.partition)
        and (cards.qos is null or cards.qos = owners.qos)
    where
        cards.price_class is not null and of_teams(owners.team) and in_window(jobs.start_ms, jobs.end_ms)
        and coalesce(cards.from_ms, 0) < coalesce(jobs.end_ms, forever_ms())
        and coalesce(cards.to_ms, forever_ms()) > jobs.start_ms
    group by owners.run_key
),

runs as (
    select
        ceilings.*,
        models.gpu_models as gpu_model,
        names.workload,
        classes.price_class,
        case when costs.cost > 0 then costs.cost end as cost,
        case when costs.energy_j > 0 then costs.energy_j end as energy_j
    from marts.run_ceilings as ceilings
    inner join marts.run_workloads as names using (run_key)
    inner join marts.run_token_costs as costs using (run_key)
    left join marts.run_gpu_models as models using (run_key)
    left join classes using (run_key)
)

select
    gpu_model,
    price_class,
    workload,
    work_unit,
    grouping(workload) = 1 as is_total,
    count(*) as runs,
    sum(held_ms)::bigint as held_ms,
    sum(work) as work,
    sum(work) * 1000 / sum(held_ms) as work_per_gpu_s,
    sum(work) filter (where cost is not null) / sum(cost)::double as work_per_cost,
    sum(work) filter (where energy_j is not null) / sum(energy_j) * 1000 as work_per_kj,
    coalesce(sum(held_ms) filter (where throughput_goodput_ratio is not null), 0)::bigint as ceiling_held_ms,
    sum(throughput_goodput_ratio * held_ms) / nullif(ceiling_held_ms, 0) as throughput_goodput_ratio,
    sum(goodput_ratio * held_ms) filter (where throughput_goodput_ratio is not null) / nullif(ceiling_held_ms, 0) as goodput_ratio
from runs
group by grouping sets ((gpu_model, work_unit), (gpu_model, price_class, workload, work_unit))
