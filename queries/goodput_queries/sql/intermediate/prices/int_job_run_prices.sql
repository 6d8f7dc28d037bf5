-- Mean price of the GPUs of each job run in the scope's window, weighted by their allocated time.
-- grain: job_run_key
-- evaluated: first
-- skip_if_empty: intermediate.int_holds
-- price_per_gpu_h: null: some of that time has no price
-- held_ms: milliseconds of a whole GPU in the window
with holds as (
    select
        holds.cluster,
        holds.job_run_key,
        coalesce(units.gpu_model, '') as gpu_model,
        coalesce(units.mig_profile, '') as mig_profile,
        (units.share_hi - units.share_lo) / units.share_of as share_ratio,
        scope_start(holds.start_ms) as start_ms,
        scope_end(least(coalesce(holds.end_ms, clusters.as_of_ms), clusters.as_of_ms)) as end_ms
    from intermediate.int_holds as holds
    inner join intermediate.int_clusters as clusters using (cluster)
    inner join intermediate.int_gpu_units as units
        on holds.gpu_uuid = units.gpu_uuid
        and holds.gpu_instance = units.gpu_instance
        and holds.start_ms >= units.start_ms
        and holds.start_ms < coalesce(units.end_ms, forever_ms())
    where in_window(holds.start_ms, least(coalesce(holds.end_ms, clusters.as_of_ms), clusters.as_of_ms))
),

-- many GPUs of a job run have the same times and kind
kinds as (
    select cluster, job_run_key, gpu_model, mig_profile, start_ms, end_ms, sum(share_ratio) as gpus
    from holds
    where end_ms > start_ms
    group by all
),

priced as (
    select
        kinds.job_run_key,
        sum(
            kinds.gpus * overlap_ms(kinds.start_ms, kinds.end_ms, prices.from_ms, prices.to_ms)
            * prices.price_per_gpu_h::double
        ) as ms_price,
        sum(kinds.gpus * overlap_ms(kinds.start_ms, kinds.end_ms, prices.from_ms, prices.to_ms)) as priced_ms
    from kinds
    inner join intermediate.int_job_run_owners as owners using (job_run_key)
    inner join intermediate.int_prices as prices on is_price_of(
        prices, kinds.cluster, kinds.gpu_model, kinds.mig_profile, owners.partition, owners.qos,
        kinds.start_ms, kinds.end_ms
    )
    group by kinds.job_run_key
),

held as (
    select job_run_key, sum(gpus * (end_ms - start_ms)) as held_ms from kinds group by job_run_key
)

select
    held.job_run_key,
    held.held_ms,
    mean_price(priced.ms_price, priced.priced_ms, held.held_ms) as price_per_gpu_h
from held
left join priced using (job_run_key)
