-- Energy of GPUs by owner and hour: differences of the GPUs' own counters, without these the integral of power readings.
-- Instances of a GPU share its energy by their slices.
-- Where a node's meter covers an hour, the energy beyond the node's GPUs is shared among them in proportion to time;
-- where it covers part of an hour, all its energy is, if the GPUs have no counters.
-- grain: cluster, job_run_key, availability, gpu_model, mig_profile, hour_ms, is_metered, is_integrated
-- availability: held, free, not_available
-- energy_mj: millijoules of the GPUs; is_integrated: from power, for want of a counter
-- measured_ms: milliseconds of a whole GPU for which that is known
-- is_metered: by nodes' meters
-- wall_mj: of those, millijoules at the meter: the GPUs' own and their part of the rest of the server
-- materialised: hourly, since it needs a pass over all readings; of time whose readings were dropped it is kept
-- skip_if_empty: raw.gpu_samples, marts.metered_hourly, state.energy_archive
with holds as (
    select
        holds.gpu_uuid,
        holds.gpu_instance,
        holds.job_run_key,
        greatest(holds.start_ms, build_from_ms()) as start_ms,
        least(coalesce(holds.end_ms, clusters.as_of_ms), build_to_ms()) as end_ms
    from intermediate.int_holds as holds
    inner join intermediate.int_clusters as clusters using (cluster)
    where holds.start_ms < build_to_ms() and (holds.end_ms is null or holds.end_ms > build_from_ms())
),

of_units as (
    select
        chosen.gpu_uuid,
        units.gpu_instance,
        chosen.hour_ms,
        chosen.is_integrated,
        any_value(columns(['share_lo', 'share_hi', 'share_of'])),
        sum(part_mj(
            chosen.energy_mj, chosen.start_ms, chosen.end_ms,
            greatest(units.start_ms, chosen.hour_ms),
            least(coalesce(units.end_ms, chosen.end_ms), chosen.hour_ms + one_hour_ms())
        )) as energy_mj,
        sum(
            least(chosen.end_ms, units.end_ms, chosen.hour_ms + one_hour_ms())
            - greatest(chosen.start_ms, units.start_ms, chosen.hour_ms)
        ) as measured_ms
    from temp.energy_steps as chosen
    inner join intermediate.int_gpu_units as units
        on chosen.gpu_uuid = units.gpu_uuid
        and units.start_ms < least(chosen.end_ms, chosen.hour_ms + one_hour_ms())
        and coalesce(units.end_ms, chosen.end_ms) > greatest(chosen.start_ms, chosen.hour_ms)
    group by all
),

of_holds as (
    select
        chosen.gpu_uuid,
        holds.gpu_instance,
        chosen.hour_ms,
        chosen.is_integrated,
        holds.job_run_key,
        sum(part_mj(
            chosen.energy_mj, chosen.start_ms, chosen.end_ms,
            greatest(holds.start_ms, chosen.hour_ms), least(holds.end_ms, chosen.hour_ms + one_hour_ms())
        )) as energy_mj,
        sum(
            least(chosen.end_ms, holds.end_ms, chosen.hour_ms + one_hour_ms())
            - greatest(chosen.start_ms, holds.start_ms, chosen.hour_ms)
        ) as measured_ms
    from temp.energy_steps as chosen
    inner join holds
        on chosen.gpu_uuid = holds.gpu_uuid
        and holds.start_ms < least(chosen.end_ms, chosen.hour_ms + one_hour_ms())
        and holds.end_ms > greatest(chosen.start_ms, chosen.hour_ms)
    group by all
),

-- what the ledger says of each part of a GPU: whose it is, and for how long it was not allocated
parts as (
    select * from marts.unheld_hourly where hour_ms >= build_from_ms() and hour_ms < build_to_ms()
),

held as (
    select
        parts.*,
        of_holds.job_run_key,
        of_holds.is_integrated,
        of_holds.energy_mj * units.share_hi // units.share_of
            - of_holds.energy_mj * units.share_lo // units.share_of as energy_mj,
        of_holds.measured_ms * units.share_hi // units.share_of
            - of_holds.measured_ms * units.share_lo // units.share_of as measured_ms
    from of_holds
    inner join of_units as units using (gpu_uuid, gpu_instance, hour_ms, is_integrated)
    inner join parts using (gpu_uuid, gpu_instance, hour_ms)
),

not_held as (
    select
        parts.*,
        units.share_lo,
        units.share_hi,
        units.share_of,
        units.is_integrated,
        any_value(units.energy_mj) - coalesce(sum(of_holds.energy_mj), 0) as rest_mj,
        any_value(units.measured_ms) - coalesce(sum(of_holds.measured_ms), 0) as rest_ms
    from parts
    inner join of_units as units using (gpu_uuid, gpu_instance, hour_ms)
    left join of_holds using (gpu_uuid, gpu_instance, hour_ms, is_integrated)
    where parts.free_ms + parts.inferred_ms + parts.away_ms > 0
    group by all
),

split as (
    select
        *,
        free_ms + inferred_ms as here_ms,
        free_ms + inferred_ms + away_ms as whole_ms,
        rest_mj * share_hi // share_of - rest_mj * share_lo // share_of as energy_mj,
        rest_ms * share_hi // share_of - rest_ms * share_lo // share_of as measured_ms
    from not_held
),

rows_ as (
    select
        cluster, node, job_run_key, 'held' as availability, gpu_model, mig_profile, hour_ms, is_integrated,
        energy_mj, measured_ms
    from held
    union all
    select
        cluster, node, null, 'free', gpu_model, mig_profile, hour_ms, is_integrated,
        energy_mj * free_ms // whole_ms, measured_ms * free_ms // whole_ms
    from split
    where free_ms > 0
    union all
    select
        cluster, node, null, 'held', gpu_model, mig_profile, hour_ms, is_integrated,
        energy_mj * here_ms // whole_ms - energy_mj * free_ms // whole_ms,
        measured_ms * here_ms // whole_ms - measured_ms * free_ms // whole_ms
    from split
    where inferred_ms > 0
    union all
    select
        cluster, node, null, 'not_available', gpu_model, mig_profile, hour_ms, is_integrated,
        energy_mj - energy_mj * here_ms // whole_ms,
        measured_ms - measured_ms * here_ms // whole_ms
    from split
    where away_ms > 0
),

-- a meter that counts less than its GPUs is not believed
meters as (
    select
        meters.cluster,
        meters.node,
        meters.hour_ms,
        any_value(meters.energy_mj) - coalesce(sum(rows_.energy_mj), 0) as rest_mj
    from intermediate.int_node_energy as meters
    left join rows_ using (cluster, node, hour_ms)
    where meters.hour_ms >= build_from_ms() and meters.hour_ms < build_to_ms()
    group by all
    having
        rest_mj >= 0
        and (any_value(meters.end_ms - meters.start_ms) = one_hour_ms() or count(rows_.energy_mj) = 0)
),

times as (
    select times.*, meters.rest_mj::hugeint as rest_mj
    from marts.metered_hourly as times
    inner join meters using (cluster, node, hour_ms)
),

up_to as (
    select
        *,
        sum(gpu_ms) over (
            partition by cluster, node, hour_ms
            order by job_run_key, availability, gpu_model, mig_profile
            rows unbounded preceding
        ) as until_ms,
        sum(gpu_ms) over (partition by cluster, node, hour_ms) as all_ms
    from times
),

at_wall as (
    select
        cluster, job_run_key, availability, gpu_model, mig_profile, hour_ms, false as is_metered,
        energy_mj, measured_ms, null::bigint as wall_mj, is_integrated
    from rows_
    anti join meters using (cluster, node, hour_ms)
    union all
    select
        cluster, job_run_key, availability, gpu_model, mig_profile, hour_ms, true,
        energy_mj, measured_ms, energy_mj, is_integrated
    from rows_
    semi join meters using (cluster, node, hour_ms)
    union all
    select
        cluster, job_run_key, availability, gpu_model, mig_profile, hour_ms, true,
        null, 0,
        rest_mj * until_ms // all_ms - rest_mj * (until_ms - gpu_ms) // all_ms,
        false
    from up_to
    where all_ms > 0
)

select
    cluster,
    job_run_key,
    availability,
    gpu_model,
    mig_profile,
    hour_ms,
    sum(energy_mj)::bigint as energy_mj,
    sum(measured_ms)::bigint as measured_ms,
    is_metered,
    sum(wall_mj)::bigint as wall_mj,
    is_integrated
from at_wall
-- older ones are in the archive
where hour_ms >= (select coalesce(max(kept_from_ms), 0) from state.kept_from where table_name = 'gpu_samples')
group by all
union all
select * replace (coalesce(is_integrated, false) as is_integrated)
from state.energy_archive
where hour_ms >= build_from_ms() and hour_ms < build_to_ms()
