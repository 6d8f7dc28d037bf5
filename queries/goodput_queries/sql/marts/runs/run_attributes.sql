-- What the scope's runs ran with in its window: code, image, versions, size, place, power limit. Differences of them
-- are what may explain a difference of speed.
-- grain: run_key, attribute
-- evaluated: first
-- access: team
-- attribute, label: of reference.run_attributes; place: in their order
-- value: of several the sorted list, at most 300 characters; of what jobs report the last one in the window
with attempts as (
    select run_key, job_run_key, cluster, partition, job_name, gpus
    from intermediate.int_attempts
    where
        in_window(start_ms, end_ms)
        and of_owner(team, user_name, run_key, partition)
        and in_cluster(cluster)
),

-- what a job reports before the window holds in it, until it reports another one
reported as (
    select
        attempts.run_key,
        attributes.attribute,
        arg_max(attributes.value, attributes.at_ms) as value,
        arg_max(attributes.source, attributes.at_ms) as reported_by
    from staging.stg_run_attributes as attributes
    inner join intermediate.int_report_lives as lives
        on attributes.cluster = lives.cluster and attributes.run_id = lives.run_id
        and attributes.attempt is not distinct from lives.attempt
        and attributes.at_ms >= lives.from_ms and attributes.at_ms < lives.until_ms
    inner join (select distinct run_key, job_run_key from attempts) as attempts using (job_run_key)
    where attributes.at_ms < scope_to_ms()
    group by attempts.run_key, attributes.attribute
),

models as (
    select
        attempts.run_key,
        arg_max(models.params, models.at_ms) filter (where models.params > 0) as params,
        arg_max(models.dtype, models.at_ms) filter (where models.dtype is not null) as dtype
    from staging.stg_job_models as models
    inner join intermediate.int_report_lives as lives
        on models.cluster = lives.cluster and models.run_id = lives.run_id
        and models.attempt is not distinct from lives.attempt
        and models.at_ms >= lives.from_ms and models.at_ms < lives.until_ms
    inner join (select distinct run_key, job_run_key from attempts) as attempts using (job_run_key)
    group by attempts.run_key
),

held as (
    select attempts.run_key, holds.node, holds.gpu_uuid, min(scope_start(holds.start_ms)) as start_ms,
        max(least(coalesce(holds.end_ms, forever_ms()), scope_to_ms()))
            as end_ms
    from intermediate.int_holds as holds
    inner join (select distinct run_key, job_run_key from attempts) as attempts using (job_run_key)
    where in_window(holds.start_ms, holds.end_ms)
    group by attempts.run_key, holds.node, holds.gpu_uuid
),

-- what one source says of a GPU holds until it says another thing; what it said first, for the time before, too
inventory as (
    select
        gpu_uuid,
        case when row_number() over by_time = 1 then 0 else coalesce(valid_from_ms, 0) end as from_ms,
        coalesce(lead(valid_from_ms) over by_time, forever_ms()) as until_ms,
        gpu_model,
        driver_version,
        vbios_version,
        power_limit_w
    from staging.stg_gpus
    where gpu_uuid in (select gpu_uuid from held)
    window by_time as (partition by source, gpu_uuid order by valid_from_ms nulls first)
),

of_gpus as (
    select held.run_key, held.node, inventory.* exclude (from_ms, until_ms)
    from held
    left join inventory
        on held.gpu_uuid = inventory.gpu_uuid and held.start_ms < inventory.until_ms and held.end_ms > inventory.from_ms
),

-- limits in force, as readings say; a limit changes rarely: five minutes of each hour show it, and cost a twelfth
read_limits as (
    select gpu_uuid, ts_ms, round(value)::bigint as limit_w
    from staging.stg_gpu_samples_other
    where
        metric in ('power_limit_enforced_w', 'power_limit_w')
        and ts >= from_ms(scope_from_ms())
        and ts < from_ms(coalesce(chosen_to_ms(), 4102444800000))
        and ts_ms % one_hour_ms() < 300000
        and gpu_uuid in (select gpu_uuid from held)
),

limits as (
    select
        held.run_key,
        string_agg(distinct read_limits.limit_w::varchar, ', ' order by read_limits.limit_w::varchar) as power_limit_w
    from held
    inner join read_limits
        on held.gpu_uuid = read_limits.gpu_uuid
        and read_limits.ts_ms >= held.start_ms
        and read_limits.ts_ms < held.end_ms
    group by held.run_key
),

measured as (
    select
        run_key,
        string_agg(distinct gpu_model, ', ' order by gpu_model) as gpu_model,
        string_agg(distinct driver_version, ', ' order by driver_version) as driver_version,
        string_agg(distinct vbios_version, ', ' order by vbios_version) as vbios_version,
        string_agg(distinct round(power_limit_w)::bigint::varchar, ', ' order by round(power_limit_w)::bigint::varchar)
            as power_limit_w,
        count(distinct node)::varchar as nodes,
        string_agg(distinct node, ', ' order by node) as node_names
    from of_gpus
    group by run_key
),

scheduled as (
    select
        run_key,
        any_value(cluster) as cluster,
        any_value(partition) as partition,
        any_value(job_name) as workload,
        max(gpus)::varchar as gpus
    from attempts
    group by run_key
),

batches as (
    select
        run_key,
        case
            when count(samples) = count(*) then round(avg(samples), 1)::varchar || ' samples'
            when count(tokens) = count(*) then round(avg(tokens))::bigint::varchar || ' tokens'
        end as batch
    from marts.judged_steps
    group by run_key
),

all_values as (
    select run_key, attribute, value, reported_by from reported
    union all
    select run_key, 'power_limit_w', power_limit_w, 'readings' from limits
    union all
    -- a job may report its driver itself; readings of the GPUs are nearer to it
    select run_key, attribute, value, 'inventory' from (unpivot measured on columns(* exclude (run_key)) into name attribute value value)
    union all
    select run_key, attribute, value, 'scheduler' from (unpivot scheduled on columns(* exclude (run_key)) into name attribute value value)
    union all
    select run_key, 'params', format('{:.4g}', params), 'job-events' from models where params is not null
    union all
    select run_key, 'dtype', dtype, 'job-events' from models where dtype is not null
    union all
    select run_key, 'batch', batch, 'job-events' from batches where batch is not null
)

select
    all_values.run_key,
    all_values.attribute,
    attributes.label,
    attributes.place,
    all_values.value[:300] as value
from all_values
inner join reference.run_attributes as attributes using (attribute)
qualify row_number() over (
    partition by all_values.run_key, all_values.attribute order by
        (all_values.reported_by = 'readings') desc, (all_values.reported_by = 'inventory') desc, all_values.reported_by
) = 1
