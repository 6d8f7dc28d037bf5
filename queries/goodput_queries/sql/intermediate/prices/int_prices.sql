-- The price of a GPU-hour for each kind of GPU and job over time: the most specific row of the rate card times
-- all factors that match. Hours of a closed day keep the price they were charged with.
-- grain: cluster, gpu_model, mig_profile, partition, qos, from_ms
-- from_ms: start, a whole hour, epoch ms
-- to_ms: end, a whole hour, epoch ms
-- list_price_per_gpu_h: of the rate card, before factors
-- factor: product of the factors that match; 1 without any
-- price_per_gpu_h: what is charged; never 0 for want of a rate: kinds without a price have no row, nor those whose
--  factors make more of it than an amount can be
-- materialised: full, since every sum of money joins it
-- skip_if_empty: raw.rates, billing.statement_prices
with kinds as (
    select distinct
        units.cluster,
        coalesce(units.gpu_model, '') as gpu_model,
        coalesce(units.mig_profile, '') as mig_profile,
        jobs.partition,
        jobs.qos
    from intermediate.int_gpu_units as units
    inner join (
        select distinct cluster, coalesce(partition, '') as partition, coalesce(qos, '') as qos
        from intermediate.int_job_run_owners
        union
        select distinct cluster, '', '' from intermediate.int_gpu_units
    ) as jobs using (cluster)
    union
    -- a job run may be allocated GPUs that nobody knows, of a kind that no GPU of the cluster is of
    select distinct cluster, coalesce(lower(gpu_type), ''), '', coalesce(partition, ''), coalesce(qos, '')
    from intermediate.int_job_runs
),

matches as (
    select
        kinds.*,
        cards.is_price,
        cards.amount,
        cards.from_ms,
        cards.to_ms,
        (cards.cluster is not null)::integer * 16
            + (cards.mig_profile is not null)::integer * 8
            + (cards.gpu_model is not null)::integer * 4
            + (cards.partition is not null)::integer * 2
            + (cards.qos is not null)::integer as specificity
    from kinds
    inner join staging.stg_rate_card as cards
        on (cards.cluster is null or cards.cluster = kinds.cluster)
        and (cards.gpu_model is null or is_model(kinds.gpu_model, cards.gpu_model))
        and (cards.mig_profile is null or cards.mig_profile = kinds.mig_profile)
        and (cards.partition is null or cards.partition = kinds.partition)
        and (cards.qos is null or cards.qos = kinds.qos)
),

kept as (
    select * exclude (source, from_at, to_at), to_ms(from_at) as from_ms, to_ms(to_at) as to_ms
    from billing.statement_prices
),

bounds as (
    select cluster, gpu_model, mig_profile, partition, qos, unnest([from_ms, to_ms]) as at_ms from matches
    union
    select cluster, gpu_model, mig_profile, partition, qos, unnest([from_ms, to_ms]) from kept
),

cells as (
    select
        * exclude (at_ms),
        at_ms as from_ms,
        lead(at_ms) over (partition by cluster, gpu_model, mig_profile, partition, qos order by at_ms) as to_ms
    from bounds
),

of_card as (
    select
        cells.*,
        arg_max(matches.amount, (matches.specificity, matches.from_ms, matches.amount))
            filter (where matches.is_price) as list_price_per_gpu_h,
        coalesce(list(matches.amount) filter (where not matches.is_price), []) as factors
    from cells
    inner join matches
        on cells.cluster = matches.cluster
        and cells.gpu_model = matches.gpu_model
        and cells.mig_profile = matches.mig_profile
        and cells.partition = matches.partition
        and cells.qos = matches.qos
        and matches.from_ms <= cells.from_ms
        and matches.to_ms >= cells.to_ms
    where cells.to_ms is not null
    group by all
),

-- the first day that kept an hour has it, where the border of days cuts one
of_days as (
    select
        cells.*,
        arg_min(columns(['list_price_per_gpu_h', 'factor', 'price_per_gpu_h']), kept.from_ms)
    from cells
    inner join kept
        on cells.cluster = kept.cluster
        and cells.gpu_model = kept.gpu_model
        and cells.mig_profile = kept.mig_profile
        and cells.partition = kept.partition
        and cells.qos = kept.qos
        and kept.from_ms <= cells.from_ms
        and kept.to_ms >= cells.to_ms
    group by all
),

of_card_priced as (
    select
        * exclude (factors),
        list_reduce(
            list_sort(factors),
            lambda product, next: try_cast(product::decimal(30, 6) * next as decimal(18, 6)),
            1::decimal(18, 6)
        ) as factor,
        try_cast(list_price_per_gpu_h::decimal(30, 6) * factor as decimal(18, 6)) as price_per_gpu_h
    from of_card
    where list_price_per_gpu_h is not null
)

select *
from of_days
union all
select *
from of_card_priced
anti join of_days using (cluster, gpu_model, mig_profile, partition, qos, from_ms)
where price_per_gpu_h is not null
