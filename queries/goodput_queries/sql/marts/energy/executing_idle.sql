-- What GPUs drew while a job's program was loaded on them and did nothing: ten minutes of a whole GPU that one job run
-- had, in which no sample shows activity and memory is in use. Start-up, restore and suspension are left out.
-- grain: cluster, team, gpu_model
-- evaluated: first
-- access: team
-- held_ms: of the ten minutes with memory and activity readings; idle_ms: of them executing but idle
-- idle_ratio: idle_ms / held_ms
-- power_w: of one GPU, mean of the idle ten minutes with a power reading; null: none has
-- energy_kwh: of these ten minutes; measured_ms: their time
with bins as (
    select
        bins.*,
        greatest(engine_max_ratio, use_max_ratio) < threshold('idle_share_ratio')
        and memory_used_bytes >= threshold('loaded_memory_bytes') as is_idle
    from intermediate.int_held_bins as bins
    where not is_starting and memory_used_bytes is not null and greatest(engine_max_ratio, use_max_ratio) is not null
)

select
    bins.cluster,
    owners.team,
    bins.gpu_model,
    600000 * count(*) as held_ms,
    600000 * count(*) filter (where bins.is_idle) as idle_ms,
    count(*) filter (where bins.is_idle) / count(*) as idle_ratio,
    avg(bins.power_w) filter (where bins.is_idle) as power_w,
    sum(bins.power_w) filter (where bins.is_idle) / 6000 as energy_kwh,
    600000 * count(bins.power_w) filter (where bins.is_idle) as measured_ms
from bins
left join intermediate.int_job_run_owners as owners using (job_run_key)
where in_scope(bins.cluster, bins.node, bins.gpu_uuid, bins.gpu_model, owners.team, owners.user_name, owners.run_key, owners.partition)
group by bins.cluster, owners.team, bins.gpu_model
having idle_ms > 0
