-- What changed from one run of the scope's window to the next one of the same workload: job name, GPU model and number of
-- GPUs in a cluster. Both runs can be compared.
-- grain: run_key, attribute
-- evaluated: first
-- access: team
-- attribute, label: code, image, versions, batch, power limit: those of reference.run_attributes that are tracked
-- value_before, value_after: of run_before and of run_key
-- started_at: start of the run that has the new one
with attributes as (
    select * from marts.run_attributes
),

runs as (
    select
        run_key,
        max(value) filter (where attribute = 'cluster') as cluster,
        max(value) filter (where attribute = 'gpus') as gpus,
        max(value) filter (where attribute = 'gpu_model') as gpu_model
    from attributes
    group by run_key
),

starts as (
    select run_key, any_value(run_id) as run_id, min(start_ms) as start_ms
    from intermediate.int_attempts
    where of_teams(team)
    group by run_key
),

tracked as (
    select
        runs.cluster,
        names.workload,
        runs.gpus::integer as gpus,
        runs.gpu_model,
        attributes.run_key,
        starts.run_id,
        starts.start_ms,
        attributes.attribute,
        attributes.label,
        attributes.value as value_after,
        lag(attributes.value) over earlier as value_before,
        lag(attributes.run_key) over earlier as run_before,
        lag(starts.run_id) over earlier as run_id_before
    from attributes
    inner join (select attribute from reference.run_attributes where is_tracked = 1) as kinds using (attribute)
    inner join runs using (run_key)
    inner join starts using (run_key)
    inner join marts.run_workloads as names using (run_key)
    where names.workload is not null
    window earlier as (
        partition by runs.cluster, names.workload, runs.gpus, runs.gpu_model, attributes.attribute
        order by starts.start_ms, attributes.run_key
    )
)

select
    * exclude (start_ms),
    from_ms(start_ms) as started_at
from tracked
where run_before is not null and value_before <> value_after
