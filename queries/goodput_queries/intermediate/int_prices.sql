-- The price of a GPU-hour for each kind of GPU and job over time: the most specific row of the rate card.
-- grain: gpu_model, mig_profile, partition, qos, from_ms
-- usd_per_gpu_h: never 0 for want of a rate: kinds without a price have no row
-- from_ms, to_ms: whole hours, epoch ms
with kinds as (
    select distinct
        coalesce(units.gpu_model, '') as gpu_model,
        coalesce(units.mig_profile, '') as mig_profile,
        jobs.partition,
        jobs.qos
    from intermediate.int_gpu_units as units
    cross join (
        select distinct coalesce(partition, '') as partition, coalesce(qos, '') as qos
        from intermediate.int_job_run_owners
        union
        select '', ''
    ) as jobs
),

matches as (
    select
        kinds.*,
        rates.usd_per_gpu_h,
        coalesce(to_ms(rates.valid_from_at), 0) as from_ms,
        coalesce(to_ms(rates.valid_to_at), 9223372036854775807) as to_ms,
        (rates.mig_profile is not null)::integer * 8
            + (rates.gpu_model is not null)::integer * 4
            + (rates.partition is not null)::integer * 2
            + (rates.qos is not null)::integer as specificity
    from kinds
    inner join raw.rates as rates
        on (rates.gpu_model is null or is_model(kinds.gpu_model, rates.gpu_model))
        and (rates.mig_profile is null or rates.mig_profile = kinds.mig_profile)
        and (rates.partition is null or rates.partition = kinds.partition)
        and (rates.qos is null or rates.qos = kinds.qos)
),

bounds as (
    select gpu_model, mig_profile, partition, qos, unnest([from_ms, to_ms]) as at_ms from matches
),

cells as (
    select
        *,
        lead(at_ms) over (partition by gpu_model, mig_profile, partition, qos order by at_ms) as to_ms
    from (select distinct * from bounds)
)

select
    cells.gpu_model,
    cells.mig_profile,
    cells.partition,
    cells.qos,
    cells.at_ms as from_ms,
    cells.to_ms,
    arg_max(matches.usd_per_gpu_h, (matches.specificity, matches.from_ms)) as usd_per_gpu_h
from cells
inner join matches
    on cells.gpu_model = matches.gpu_model
    and cells.mig_profile = matches.mig_profile
    and cells.partition = matches.partition
    and cells.qos = matches.qos
    and matches.from_ms <= cells.at_ms
    and matches.to_ms >= cells.to_ms
where cells.to_ms is not null
group by all
