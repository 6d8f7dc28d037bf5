-- Charged lines of the scope's window, before idle cost is allocated: GPU time and energy by cluster, account, user, run,
-- partition, GPU model and price. The gpu_ms add up to the ledger's, to the millisecond; cost is their product with the
-- price, computed and rounded where it is printed. Scope: window, cluster, model, team, user, run, partition.
-- grain: line, cluster, team, user_name, run_key, partition, qos, gpu_model, mig_profile, list_price_per_gpu_h, factor, price_per_gpu_h, bucket
-- access: team
-- evaluated: first
-- line: usage (allocated to job runs), inferred (in use, but no scheduler or label says by whom), unplaced (allocated, but on no
--  known GPU: outside the ledger and the capacity), reserved_idle (team: the owner of the reservation, where it is one),
--  idle, not_available
-- price_per_gpu_h: null: the rate card has no price
-- gpu_ms: milliseconds of a whole GPU; of usage it is the sum of the five that follow
-- productive_ms: useful time: the headline's numerator (definition 2), before declared work is counted
-- other_use_ms: evaluation and other declared work
-- communication_ms: of the useful time; definition 1 had it among other use
-- own_waste_ms: lost for reasons of the job's own, by reference.blame_by_cause
-- platform_waste_ms: lost for reasons of the infrastructure
-- unsettled_ms: not settled by the evidence
-- idle_held_ms, lost_ms: of the waste: allocated and idle; lost work, fault stalls, failed without progress
-- credit_ms: of the waste: lost because infrastructure failed
-- energy_mj: millijoules of the GPUs, as in marts.statement_energy_hourly; null: not measured
-- measured_ms: GPU time for which energy is known
-- metered_mj_price: millijoules x price of a kWh, at the tariffs of their hours: at the node's meter where it covers
--  the hour, else of the GPUs' counters; null: no tariff
-- untariffed_mj: of energy_mj, for which there is no tariff
-- bucket: which of the scope's buckets, from 0, where it has buckets: days of whole hours, read together
-- wall_mj: millijoules at the meters of nodes that have one; null: none has
with times as (
    select cluster, node, job_run_key, attempt_key, gpu_model, mig_profile, category, phase, hour_ms, gpu_ms
    from marts.statement_hourly
    where hour_ms >= scope_from_ms() and hour_ms <= scope_to_ms() - one_hour_ms()
    union all
    -- hours that the window cuts (a zone with half hours): of the finer ledger
    select cluster, node, job_run_key, attempt_key, gpu_model, mig_profile, category, phase, hour_ms, gpu_ms
    from marts.ledger_scoped
    where hour_ms < scope_from_ms() or hour_ms > scope_to_ms() - one_hour_ms()
),

reservations as (
    select distinct
        cluster,
        owner,
        unnest(nodes) as node,
        start_ms,
        coalesce(end_ms, forever_ms()) as end_ms
    from staging.stg_reservations
    where owner is not null and owner not like '%,%' and not is_maintenance
),

reserved_hours as (
    select distinct cluster, node, hour_ms from times where category = 'reserved_idle'
),

reserved_for as (
    select
        hours.*,
        -- two owners in one hour: nobody can say whose idleness it was
        case when count(distinct reservations.owner) = 1 then any_value(reservations.owner) end as owner
    from reserved_hours as hours
    inner join reservations
        on coalesce(reservations.cluster, hours.cluster) = hours.cluster
        and reservations.node = hours.node
        and reservations.start_ms < hours.hour_ms + one_hour_ms()
        and reservations.end_ms > hours.hour_ms
    group by all
),

inferred as (
    select job_run_key from intermediate.int_job_runs where ownership in ('job_event', 'process')
),

settled as (
    select
        times.* exclude (node, attempt_key, phase),
        case
            when categories.group = 'held' and (times.job_run_key is null or inferred.job_run_key is not null)
                then 'inferred'
            when categories.group = 'held' then 'usage'
            when times.category = 'reserved_idle' then 'reserved_idle'
            when categories.group = 'free' then 'idle'
            else 'not_available'
        end as line,
        reserved_for.owner,
        blame_of(times.category, categories.blame, waits.blame, causes.blame) as blame,
        categories.blame = 'fault' and coalesce(causes.is_credited, false) as is_credited
    from times
    inner join reference.gpu_second_categories as categories using (category)
    left join inferred using (job_run_key)
    left join intermediate.int_attempt_causes as causes using (attempt_key)
    left join reference.blame_by_cause as waits on waits.applies_to = 'wait' and times.phase = waits.cause
    left join reserved_for
        on times.category = 'reserved_idle'
        and times.cluster = reserved_for.cluster
        and times.node = reserved_for.node
        and times.hour_ms = reserved_for.hour_ms
),

measures as (
    select
        * exclude (gpu_ms, category, blame, is_credited),
        gpu_ms,
        case when blame = 'use' and category <> 'other_declared' then gpu_ms else 0 end as productive_ms,
        case when category = 'other_declared' then gpu_ms else 0 end as other_use_ms,
        case when category = 'exposed_comm' then gpu_ms else 0 end as communication_ms,
        case when blame = 'own' then gpu_ms else 0 end as own_waste_ms,
        case when blame = 'platform' then gpu_ms else 0 end as platform_waste_ms,
        case when blame = 'unsettled' then gpu_ms else 0 end as unsettled_ms,
        case when category = 'idle_held' then gpu_ms else 0 end as idle_held_ms,
        case when category in ('lost_work', 'fault_stall', 'failed_without_progress') then gpu_ms else 0 end
            as lost_ms,
        case when is_credited then gpu_ms else 0 end as credit_ms,
        null::bigint as energy_mj,
        null::bigint as measured_ms,
        null::decimal(38, 9) as metered_mj_price,
        0 as untariffed_mj,
        null::bigint as wall_mj
    from settled
    union all by name
    select
        energies.* exclude (availability, is_metered),
        energy_line(energies.availability, energies.job_run_key, inferred.job_run_key is not null) as line,
        metered(
            energies.wall_mj::decimal(20, 0), energies.energy_mj::decimal(20, 0),
            tariffs.price_per_wall_kwh, tariffs.price_per_kwh
        ) as metered_mj_price,
        case when tariffs.price_per_kwh is null then energies.energy_mj else 0 end as untariffed_mj
    from marts.energy_scoped as energies
    left join inferred using (job_run_key)
    left join marts.statement_tariffs as tariffs using (cluster, hour_ms)
    union all by name
    select
        cluster, job_run_key, 'unplaced' as line, gpu_model, hour_ms, gpu_ms, gpu_ms as unsettled_ms, 0 as untariffed_mj
    from marts.unplaced
)

select
    measures.line,
    measures.cluster,
    case
        when measures.line in ('usage', 'inferred', 'unplaced') then owners.team
        else measures.owner
    end as team,
    owners.user_name,
    owners.run_key,
    any_value(owners.run_id) as run_id,
    any_value(owners.job_name) as job_name,
    owners.partition,
    owners.qos,
    measures.gpu_model,
    measures.mig_profile,
    prices.list_price_per_gpu_h,
    prices.factor,
    prices.price_per_gpu_h,
    (measures.hour_ms - chosen_from_ms()) // chosen_bucket_ms() as bucket,
    count(distinct measures.job_run_key) as job_runs,
    coalesce(sum(columns([
        'gpu_ms', 'productive_ms', 'other_use_ms', 'communication_ms', 'own_waste_ms', 'platform_waste_ms',
        'unsettled_ms', 'idle_held_ms', 'lost_ms', 'credit_ms', 'untariffed_mj'
    ])), 0)::bigint,
    sum(columns(['energy_mj', 'measured_ms', 'wall_mj']))::bigint,
    sum(measures.metered_mj_price) as metered_mj_price
from measures
left join intermediate.int_job_run_owners as owners using (job_run_key)
left join intermediate.int_prices as prices on is_price_of(
    prices, measures.cluster, measures.gpu_model, measures.mig_profile, owners.partition, owners.qos,
    measures.hour_ms, measures.hour_ms + 1
)
where
    in_scope(
        measures.cluster, null, null, measures.gpu_model,
        owners.team, owners.user_name, owners.run_key, owners.partition
    )
group by all
