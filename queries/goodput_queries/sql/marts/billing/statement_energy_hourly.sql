-- Energy of GPUs by owner and hour: differences of the GPUs' own counters.
-- A counter that resets (the driver was reloaded) counts from 0. Energy is spread evenly between two readings; between
-- readings too far apart it is unknown. Instances of a GPU share its energy by their slices.
-- Where a node's meter covers an hour, the energy beyond the node's GPUs is shared among them in proportion to time;
-- where it covers part of an hour, all its energy is, if the GPUs have no counters.
-- grain: cluster, job_run_key, availability, gpu_model, mig_profile, hour_ms, is_metered
-- availability: held, free, not_available
-- energy_mj: millijoules of the GPUs' counters
-- measured_ms: milliseconds of a whole GPU for which that is known
-- is_metered: by nodes' meters
-- wall_mj: of those, millijoules at the meter: the GPUs' own and their part of the rest of the server
-- materialised: hourly, since it needs a pass over all readings; of time whose readings were dropped it is kept
with holds as (
    select
        holds.gpu_uuid,
        holds.gpu_instance,
        holds.job_run_key,
        greatest(holds.start_ms, build_from_ms()) as start_ms,
        least(coalesce(holds.end_ms, clusters.as_of_ms), build_to_ms()) as end_ms,
        holds.end_ms as known_end_ms
    from intermediate.int_holds as holds
    inner join intermediate.int_clusters as clusters using (cluster)
    where holds.start_ms < build_to_ms() and (holds.end_ms is null or holds.end_ms > build_from_ms())
),

-- hours in which a GPU changes hands are cut there: of each piece the first and the last reading count
changes as (
    select distinct gpu_uuid, at_ms // 3600000 * 3600000 as hour_ms, at_ms
    from (select gpu_uuid, unnest([start_ms, known_end_ms]) as at_ms from holds where start_ms < end_ms)
    where at_ms % 3600000 <> 0 and at_ms < build_to_ms()
),

pieces as (
    select
        hash(gpu_uuid, hour_ms) as gpu_hour,
        at_ms as start_ms,
        lead(at_ms, 1, hour_ms + 3600000) over (partition by gpu_uuid, hour_ms order by at_ms) as end_ms
    from (
        select * from changes
        union all
        select distinct gpu_uuid, hour_ms, hour_ms from changes
    )
),

-- hashes instead of names: numbers join and sort faster
readings as (
    select
        hash(source, gpu_uuid, gpu_instance) as series,
        hash(gpu_uuid, ts_ms // 3600000 * 3600000) as gpu_hour,
        ts_ms,
        ts_ms // 3600000 * 3600000 as hour_ms,
        energy_j
    from staging.stg_gpu_samples
    where
        ts >= from_ms(build_from_ms() - reading_margin_ms())
        and ts < from_ms(build_to_ms() + reading_margin_ms())
        and gpu_instance = ''
        and energy_j between 0 and 1e13  -- 10 kW for 30 years: more is no counter
),

ends as (
    select
        readings.series,
        min(readings.ts_ms) as first_ms,
        arg_min(readings.energy_j, readings.ts_ms) as first_j,
        max(readings.ts_ms) as last_ms,
        arg_max(readings.energy_j, readings.ts_ms) as last_j,
        max(readings.energy_j) as most_j
    from readings
    left join pieces
        on readings.gpu_hour = pieces.gpu_hour
        and readings.ts_ms >= pieces.start_ms
        and readings.ts_ms < pieces.end_ms
    group by readings.series, readings.hour_ms, pieces.start_ms
),

-- within a piece the counters are complete, however few readings there are
points as (
    select series, first_ms as ts_ms, first_j as energy_j, null as gain_j from ends
    union all
    select
        series, last_ms, last_j,
        most_j - first_j + case when last_j < most_j then last_j else 0 end
    from ends
    where last_ms > first_ms
),

in_order as (
    select
        *,
        lag(series) over by_series as before_series,
        lag(ts_ms) over by_series as before_ms,
        lag(energy_j) over by_series as before_j
    from points
    -- one order of all is cheaper than one of each of many series
    window by_series as (order by series, ts_ms)
),

steps as (
    select
        series,
        before_ms as start_ms,
        ts_ms as end_ms,
        gain_j is not null as is_within,
        coalesce(gain_j, energy_j - case when energy_j >= before_j then before_j else 0 end) as energy_j
    from in_order
    where before_series = series
),

-- more than 10 kW is no GPU: such a jump is not believed
known as (
    select
        series,
        start_ms,
        end_ms,
        cast(round(1000 * energy_j) as bigint) as energy_mj
    from steps
    where
        end_ms > start_ms
        and (is_within or end_ms - start_ms <= reading_margin_ms())
        and energy_j <= 10.0 * (end_ms - start_ms)
),

by_hour as (
    select
        *,
        unnest(range(start_ms // 3600000, (end_ms - 1) // 3600000 + 1)) * 3600000 as hour_ms
    from known
),

in_hours as (
    select by_hour.*, series.source, series.gpu_uuid, series.has_rivals
    from by_hour
    inner join (
        select *, count(*) over (partition by gpu_uuid, gpu_instance) > 1 as has_rivals from state.reading_series
    ) as series using (series)
    where by_hour.hour_ms >= build_from_ms() and by_hour.hour_ms < build_to_ms()
),

-- of several sources the one with the most readings is used for the GPU and hour
chosen as (
    select * from in_hours where not has_rivals
    union all
    select in_hours.*
    from in_hours
    left join intermediate.int_sample_intervals as intervals using (series, hour_ms)
    where has_rivals
    qualify rank() over (
        partition by gpu_uuid, hour_ms order by intervals.interval_ms nulls last, source
    ) = 1
),

of_units as (
    select
        chosen.gpu_uuid,
        units.gpu_instance,
        chosen.hour_ms,
        any_value(units.share_lo) as share_lo,
        any_value(units.share_hi) as share_hi,
        any_value(units.share_of) as share_of,
        sum(part_mj(
            chosen.energy_mj, chosen.start_ms, chosen.end_ms,
            greatest(units.start_ms, chosen.hour_ms),
            least(coalesce(units.end_ms, chosen.end_ms), chosen.hour_ms + 3600000)
        )) as energy_mj,
        sum(
            least(chosen.end_ms, units.end_ms, chosen.hour_ms + 3600000)
            - greatest(chosen.start_ms, units.start_ms, chosen.hour_ms)
        ) as measured_ms
    from chosen
    inner join intermediate.int_gpu_units as units
        on chosen.gpu_uuid = units.gpu_uuid
        and units.start_ms < least(chosen.end_ms, chosen.hour_ms + 3600000)
        and coalesce(units.end_ms, chosen.end_ms) > greatest(chosen.start_ms, chosen.hour_ms)
    group by all
),

of_holds as (
    select
        chosen.gpu_uuid,
        holds.gpu_instance,
        chosen.hour_ms,
        holds.job_run_key,
        sum(part_mj(
            chosen.energy_mj, chosen.start_ms, chosen.end_ms,
            greatest(holds.start_ms, chosen.hour_ms), least(holds.end_ms, chosen.hour_ms + 3600000)
        )) as energy_mj,
        sum(
            least(chosen.end_ms, holds.end_ms, chosen.hour_ms + 3600000)
            - greatest(chosen.start_ms, holds.start_ms, chosen.hour_ms)
        ) as measured_ms
    from chosen
    inner join holds
        on chosen.gpu_uuid = holds.gpu_uuid
        and holds.start_ms < least(chosen.end_ms, chosen.hour_ms + 3600000)
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
        of_holds.energy_mj * units.share_hi // units.share_of
            - of_holds.energy_mj * units.share_lo // units.share_of as energy_mj,
        of_holds.measured_ms * units.share_hi // units.share_of
            - of_holds.measured_ms * units.share_lo // units.share_of as measured_ms
    from of_holds
    inner join of_units as units using (gpu_uuid, gpu_instance, hour_ms)
    inner join parts using (gpu_uuid, gpu_instance, hour_ms)
),

not_held as (
    select
        parts.*,
        units.share_lo,
        units.share_hi,
        units.share_of,
        any_value(units.energy_mj) - coalesce(sum(of_holds.energy_mj), 0) as rest_mj,
        any_value(units.measured_ms) - coalesce(sum(of_holds.measured_ms), 0) as rest_ms
    from parts
    inner join of_units as units using (gpu_uuid, gpu_instance, hour_ms)
    left join of_holds using (gpu_uuid, gpu_instance, hour_ms)
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
        cluster, node, job_run_key, 'held' as availability, gpu_model, mig_profile, hour_ms, energy_mj, measured_ms
    from held
    union all
    select
        cluster, node, null, 'free', gpu_model, mig_profile, hour_ms,
        energy_mj * free_ms // whole_ms, measured_ms * free_ms // whole_ms
    from split
    where free_ms > 0
    union all
    select
        cluster, node, null, 'held', gpu_model, mig_profile, hour_ms,
        energy_mj * here_ms // whole_ms - energy_mj * free_ms // whole_ms,
        measured_ms * here_ms // whole_ms - measured_ms * free_ms // whole_ms
    from split
    where inferred_ms > 0
    union all
    select
        cluster, node, null, 'not_available', gpu_model, mig_profile, hour_ms,
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
        and (any_value(meters.end_ms - meters.start_ms) = 3600000 or count(rows_.energy_mj) = 0)
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
            rows between unbounded preceding and current row
        ) as until_ms,
        sum(gpu_ms) over (partition by cluster, node, hour_ms) as all_ms
    from times
),

at_wall as (
    select
        cluster, job_run_key, availability, gpu_model, mig_profile, hour_ms, false as is_metered,
        energy_mj, measured_ms, null::bigint as wall_mj
    from rows_
    anti join meters using (cluster, node, hour_ms)
    union all
    select
        cluster, job_run_key, availability, gpu_model, mig_profile, hour_ms, true,
        energy_mj, measured_ms, energy_mj
    from rows_
    semi join meters using (cluster, node, hour_ms)
    union all
    select
        cluster, job_run_key, availability, gpu_model, mig_profile, hour_ms, true,
        null, 0,
        rest_mj * until_ms // all_ms - rest_mj * (until_ms - gpu_ms) // all_ms
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
    sum(wall_mj)::bigint as wall_mj
from at_wall
-- older ones are in the archive
where hour_ms >= (select coalesce(max(kept_from_ms), 0) from state.kept_from where table_name = 'gpu_samples')
group by all
union all
select * from state.energy_archive where hour_ms >= build_from_ms() and hour_ms < build_to_ms()
