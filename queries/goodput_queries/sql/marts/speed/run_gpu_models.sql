-- GPUs of the scope's runs with the published peaks that all of them share.
-- grain: run_key
-- evaluated: first
-- access: team
-- gpu_models: names of the models, in order; held_gpus: number of different GPUs and GPU instances
-- memory_bytes_per_s: of its memory, and bf16_flops_per_s .. sparse_factor: mean over the GPUs; null: not known for each of them, or
--  one is a GPU instance
with held as (
    select distinct owners.run_key, holds.gpu_uuid, holds.gpu_instance
    from intermediate.int_holds as holds
    inner join intermediate.int_job_run_owners as owners using (job_run_key)
    where
        in_window(holds.start_ms, holds.end_ms)
        and in_cluster(holds.cluster)
        and of_owner(owners.team, owners.user_name, owners.run_key, owners.partition)
),

models as (
    select gpu_uuid, any_value(gpu_model) as gpu_model from intermediate.int_gpu_inventory group by gpu_uuid
),

known as (
    select
        held.run_key,
        held.gpu_instance,
        models.gpu_model,
        peaks.* exclude (gpu_model),
        held.gpu_instance = '' and peaks.peak_model is not null as has_peak
    from held
    left join models using (gpu_uuid)
    left join marts.gpu_model_peaks as peaks on models.gpu_model = peaks.gpu_model
)

select
    run_key,
    string_agg(distinct gpu_model, ', ' order by gpu_model) as gpu_models,
    count(*) as held_gpus,
    count(*) filter (where gpu_instance != '') as gpu_instances,
    case when bool_and(has_peak) and count(columns('_flops_per_s$|^sparse_factor$|^memory_bytes_per_s$')) = count(*)
        then avg(columns('_flops_per_s$|^sparse_factor$|^memory_bytes_per_s$'))
    end
from known
group by run_key
