-- Work per joule of jobs of one name against the power cap, where they ran under two caps and more: whole hours that
-- steps fill, of which all energy is known. What a cap does to other jobs it does not say.
-- grain: cluster, job_name, gpu_model, gpus, work_unit, power_cap_w
-- evaluated: first
-- gpus: of the job; work_unit: tokens, samples or steps: what all of its hours report
-- power_cap_w: limit that was in force on all its GPUs in the hour, to the watt, as the readings say it; without such
--  readings, of the inventory
-- hours, runs: number of hours, and of different runs in them
-- work_per_j: of the GPUs' counters, mean over the hours; work_per_j_low, work_per_j_high: 10th and 90th percentile
-- work_per_gpu_s: speed: work of a second of one GPU, mean
-- power_w: of one GPU, mean
-- gain_ratio: work_per_j over that of the highest cap of the same job, less 1
with attempts as (
    select attempt_key, job_run_key, run_key, cluster, job_name, gpus
    from intermediate.int_attempts
    where
        in_window(start_ms, end_ms)
        and of_owner(team, user_name, run_key, partition)
        and in_cluster(cluster)
        and gpus > 0
),

in_hours as (
    select
        attempts.*,
        steps.tokens,
        steps.samples,
        steps.start_ms,
        steps.end_ms,
        unnest(range(steps.start_ms // one_hour_ms(), (steps.end_ms - 1) // one_hour_ms() + 1)) * one_hour_ms() as hour_ms
    from intermediate.int_train_steps as steps
    inner join attempts using (attempt_key)
    where steps.end_ms > steps.start_ms and in_window(steps.start_ms, steps.end_ms)
),

cut as (
    select
        *,
        (least(end_ms, hour_ms + one_hour_ms()) - greatest(start_ms, hour_ms)) as part_ms,
        part_ms / (end_ms - start_ms) as part
    from in_hours
),

work as (
    select
        job_run_key,
        any_value(columns(['run_key', 'cluster', 'job_name', 'gpus'])),
        hour_ms,
        case when count(tokens) = count(*) then sum(tokens * part) end as tokens,
        case when count(samples) = count(*) then sum(samples * part) end as samples,
        sum(part) as steps
    from cut
    where
        hour_ms >= scope_from_ms()
        and hour_ms <= scope_to_ms() - one_hour_ms()
    group by job_run_key, hour_ms
    having sum(part_ms) >= threshold('cap_step_share') * one_hour_ms()
),

energies as (
    select
        job_run_key,
        hour_ms,
        any_value(gpu_model) as gpu_model,
        sum(energy_mj) / 1000 as energy_j,
        sum(measured_ms) as measured_ms
    from marts.energy_scoped
    semi join work using (job_run_key, hour_ms)
    where availability = 'held'
    group by job_run_key, hour_ms
    having count(distinct gpu_model) = 1
),

holds as (
    select work.job_run_key, work.hour_ms, holds.gpu_uuid
    from work
    inner join intermediate.int_holds as holds using (job_run_key)
    where
        holds.start_ms <= work.hour_ms
        and (holds.end_ms is null or holds.end_ms >= work.hour_ms + one_hour_ms())
        and in_place(holds.cluster, holds.node, holds.gpu_uuid, null)
),

-- a limit changes rarely: five minutes of each hour show it, and cost a twelfth
read_caps as (
    select
        gpu_uuid,
        ts_ms // one_hour_ms() * one_hour_ms() as hour_ms,
        round(min(value)) as low_w,
        round(max(value)) as high_w
    from staging.stg_gpu_samples_other
    where
        metric in ('power_limit_enforced_w', 'power_limit_w')
        and ts >= from_ms(scope_from_ms())
        and ts < from_ms(coalesce(chosen_to_ms(), 4102444800000))
        and ts_ms % one_hour_ms() < 300000
        and gpu_uuid in (select gpu_uuid from holds)
    group by gpu_uuid, ts_ms // one_hour_ms() * one_hour_ms()
),

inventory as (
    select gpu_uuid, round(max(power_limit_w)) as limit_w from staging.stg_gpus group by gpu_uuid
),

caps as (
    select
        holds.job_run_key,
        holds.hour_ms,
        max(coalesce(read_caps.high_w, inventory.limit_w)) as power_cap_w
    from holds
    left join read_caps using (gpu_uuid, hour_ms)
    left join inventory using (gpu_uuid)
    group by holds.job_run_key, holds.hour_ms
    having
        count(coalesce(read_caps.high_w, inventory.limit_w)) = count(*)
        and min(coalesce(read_caps.low_w, inventory.limit_w)) = max(coalesce(read_caps.high_w, inventory.limit_w))
),

known as (
    select
        work.*,
        energies.gpu_model,
        energies.energy_j,
        caps.power_cap_w,
        count(work.tokens) over same = count(*) over same as has_tokens,
        count(work.samples) over same = count(*) over same as has_samples
    from work
    inner join energies using (job_run_key, hour_ms)
    inner join caps using (job_run_key, hour_ms)
    where energies.energy_j > 0 and energies.measured_ms >= threshold('cap_step_share') * one_hour_ms() * work.gpus
    window same as (partition by work.cluster, work.job_name, energies.gpu_model, work.gpus)
),

measured as (
    select
        *,
        case when has_tokens then 'tokens' when has_samples then 'samples' else 'steps' end as work_unit,
        case when has_tokens then tokens when has_samples then samples else steps end as work
    from known
),

by_cap as (
    select
        cluster,
        job_name,
        gpu_model,
        gpus,
        work_unit,
        power_cap_w,
        count(*) as hours,
        count(distinct run_key) as runs,
        avg(work / energy_j) as work_per_j,
        quantile_cont(work / energy_j, 0.1) as work_per_j_low,
        quantile_cont(work / energy_j, 0.9) as work_per_j_high,
        avg(work / (3600.0 * gpus)) as work_per_gpu_s,
        avg(energy_j / (3600.0 * gpus)) as power_w
    from measured
    group by all
)

select
    *,
    work_per_j / nullif(arg_max(work_per_j, power_cap_w) over same, 0) - 1 as gain_ratio
from by_cap
window same as (partition by cluster, job_name, gpu_model, gpus, work_unit)
qualify count(*) over same > 1
