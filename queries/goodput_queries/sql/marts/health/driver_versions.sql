-- Drivers and VBIOS of the scope's GPUs: GPU time under each pair of versions in the window, and the incidents of hardware
-- or driver in it.
-- grain: cluster, gpu_model, driver_version, vbios_version
-- evaluated: first
-- driver_version, vbios_version: null: no source reports it
-- gpus: number of GPUs that had them; gpu_ms: milliseconds of a whole GPU in the inventory
-- errors: incidents of hardware or driver, by the versions that the GPU had then
-- errors_per_1000_gpu_h: errors / GPU time; errors_low, errors_high: exact 95 % Poisson interval; null: no time
with reported as (
    select
        gpu_uuid,
        coalesce(valid_from_ms, 0) as from_ms,
        max(driver_version) as driver_version,
        max(vbios_version) as vbios_version
    from staging.stg_gpus
    where driver_version is not null or vbios_version is not null
    group by gpu_uuid, coalesce(valid_from_ms, 0)
),

-- what one source says holds until another version is reported
known as (
    select
        gpu_uuid,
        from_ms,
        coalesce(
            last_value(driver_version ignore nulls) over until, first_value(driver_version ignore nulls) over of_all
        ) as driver_version,
        coalesce(
            last_value(vbios_version ignore nulls) over until, first_value(vbios_version ignore nulls) over of_all
        ) as vbios_version
    from reported
    window
        until as (partition by gpu_uuid order by from_ms),
        of_all as (partition by gpu_uuid order by from_ms rows between unbounded preceding and unbounded following)
),

versions as (
    select
        *,
        coalesce(lead(from_ms) over (partition by gpu_uuid order by from_ms), forever_ms()) as to_ms
    from known
),

-- the first version reported is taken for the time before it too
dated as (
    select
        stays.*,
        versions.driver_version,
        versions.vbios_version,
        greatest(stays.start_ms, case when versions.from_ms = first_ms.from_ms then 0 else versions.from_ms end) as from_ms,
        least(stays.end_ms, coalesce(versions.to_ms, stays.end_ms)) as to_ms
    from intermediate.int_stays_in_scope as stays
    left join versions using (gpu_uuid)
    left join (select gpu_uuid, min(from_ms) as from_ms from versions group by gpu_uuid) as first_ms using (gpu_uuid)
),

times as (
    select * replace (coalesce(from_ms, start_ms) as from_ms) from dated where to_ms > coalesce(from_ms, start_ms)
),

errors as (
    select times.cluster, times.gpu_model, times.driver_version, times.vbios_version, count(*) as errors
    from marts.gpu_incidents as incidents
    inner join times
        on incidents.gpu_uuid = times.gpu_uuid
        and epoch_ms(incidents.start_at) >= times.from_ms
        and epoch_ms(incidents.start_at) < times.to_ms
    where incidents.class = 'hardware'
    group by all
),

totals as (
    select
        cluster,
        gpu_model,
        driver_version,
        vbios_version,
        count(distinct gpu_uuid) as gpus,
        sum(to_ms - from_ms)::bigint as gpu_ms
    from times
    group by cluster, gpu_model, driver_version, vbios_version
)

select
    totals.*,
    coalesce(errors.errors, 0) as errors,
    coalesce(errors.errors, 0) * 3.6e9 / nullif(totals.gpu_ms, 0) as errors_per_1000_gpu_h,
    poisson_low(coalesce(errors.errors, 0)) * 3.6e9 / nullif(totals.gpu_ms, 0) as errors_low,
    poisson_high(coalesce(errors.errors, 0)) * 3.6e9 / nullif(totals.gpu_ms, 0) as errors_high
from totals
left join errors
    on totals.cluster = errors.cluster
    and totals.gpu_model is not distinct from errors.gpu_model
    and totals.driver_version is not distinct from errors.driver_version
    and totals.vbios_version is not distinct from errors.vbios_version
