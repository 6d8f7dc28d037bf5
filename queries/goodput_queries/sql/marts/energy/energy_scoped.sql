-- Energy by owner and hour in the scope's window. Of an hour that the window cuts an owner has the part of its energy that
-- its GPU time inside the window is of its GPU time in the hour; where that time was pruned, the part of the hour's
-- evidence. Windows that follow each other add up, to the millijoule. Owners do not restrict it.
-- grain: cluster, job_run_key, availability, gpu_model, mig_profile, hour_ms, is_metered, is_integrated
-- availability, energy_mj, measured_ms, is_metered, wall_mj, is_integrated: as in marts.statement_energy_hourly
with cut_hours as (
    select
        segments.cluster,
        segments.job_run_key,
        -- a stretch of steps is allocated, whatever its categories
        coalesce(categories.group, 'held') as availability,
        segments.gpu_model,
        segments.mig_profile,
        segments.hour_ms,
        sum(segments.gpu_ms)::hugeint as all_ms,
        sum(share_ms(
            segments.start_ms,
            greatest(segments.start_ms, least(segments.end_ms, scope_from_ms())),
            segments.share_lo, segments.share_hi, segments.share_of
        ))::hugeint as before_ms,
        sum(share_ms(
            segments.start_ms,
            greatest(segments.start_ms, least(segments.end_ms, chosen_to_ms())),
            segments.share_lo, segments.share_hi, segments.share_of
        ))::hugeint as until_ms
    from intermediate.int_ledger_segments as segments
    left join reference.gpu_second_categories as categories using (category)
    where
        segments.hour_ms in (
            scope_from_ms() // one_hour_ms() * one_hour_ms(),
            coalesce(chosen_to_ms(), 0) // one_hour_ms() * one_hour_ms()
        )
        and not is_whole_hour(segments.hour_ms)
    group by all
    having sum(segments.gpu_ms) > 0
),

evident as (
    select
        energy.*,
        greatest(energy.hour_ms, clusters.first_ms) as start_ms,
        least(energy.hour_ms + one_hour_ms(), clusters.as_of_ms) as end_ms
    from marts.statement_energy_hourly as energy
    inner join intermediate.int_clusters as clusters using (cluster)
    where in_window(energy.hour_ms, energy.hour_ms + one_hour_ms())
),

parts as (
    select
        evident.* exclude (start_ms, end_ms),
        coalesce(cut_hours.before_ms, least(scope_start(start_ms), end_ms) - start_ms) as before_ms,
        coalesce(cut_hours.until_ms, greatest(scope_end(end_ms), start_ms) - start_ms) as until_ms,
        coalesce(cut_hours.all_ms, end_ms - start_ms) as all_ms
    from evident
    left join cut_hours
        on evident.cluster = cut_hours.cluster
        and evident.job_run_key is not distinct from cut_hours.job_run_key
        and evident.availability = cut_hours.availability
        and evident.gpu_model is not distinct from cut_hours.gpu_model
        and evident.mig_profile is not distinct from cut_hours.mig_profile
        and evident.hour_ms = cut_hours.hour_ms
    where end_ms > start_ms
)

select
    * exclude (energy_mj, measured_ms, wall_mj, before_ms, until_ms, all_ms),
    part_mj(columns(['wall_mj', 'energy_mj', 'measured_ms'])::hugeint, 0, all_ms, before_ms, until_ms)::bigint
from parts
where until_ms > before_ms
