-- State of each GPU or MIG instance at the end of the scope's window, or of the evidence where that ends before.
-- Owners do not restrict it.
-- grain: gpu_uuid, gpu_instance
-- evaluated: first
-- at_ms: that time, epoch ms
-- share_ratio: share of the GPU
-- category, "group": of the ledger in the last segment. Where readings end a little earlier it is unknown: then the last one
--  that is known, of the same job run and the last ten minutes. null: the ledger does not reach that time
-- job_run_key: null where it is not allocated
with ends as (
    select cluster, least(as_of_ms, coalesce(chosen_to_ms(), as_of_ms)) as at_ms
    from intermediate.int_clusters
),

units as (
    select
        units.*,
        ends.at_ms,
        list_distinct([(ends.at_ms - 1) // one_hour_ms(), (ends.at_ms - ten_minutes_ms()) // one_hour_ms()]) as hours
    from intermediate.int_gpu_units as units
    inner join ends using (cluster)
    where
        units.start_ms < ends.at_ms
        and coalesce(units.end_ms, forever_ms()) >= ends.at_ms
        and in_place(units.cluster, units.node, units.gpu_uuid, units.gpu_model)
),

of_hours as (
    select gpu_uuid, gpu_instance, at_ms, unnest(hours) * one_hour_ms() as hour_ms from units
),

lasting as (
    select
        segments.* exclude (gpu_ms) replace (least(segments.end_ms, of_hours.at_ms) as end_ms),
        segments.end_ms >= of_hours.at_ms as is_at_end
    from intermediate.int_ledger_segments as segments
    inner join of_hours using (gpu_uuid, gpu_instance, hour_ms)
    where
        segments.start_ms < of_hours.at_ms
        and segments.end_ms > of_hours.at_ms - ten_minutes_ms()
        -- older ones are in the archive
        and segments.hour_ms >= (
            select coalesce(max(kept_from_ms), 0) from state.kept_from where table_name = 'gpu_samples'
        )
),

segments as (
    select
        gpu_uuid,
        gpu_instance,
        category,
        job_run_key,
        -- of a stretch of steps the category that it ends with; a split is more than its step
        (start_ms, last_ms, category <> 'step_unsplit', gpu_ms, category) as place,
        is_at_end
    from ledger_of('lasting')
    union all
    -- of hours whose readings were dropped the archive has sums: the category with most time
    select
        archive.gpu_uuid,
        archive.gpu_instance,
        archive.category,
        archive.job_run_key,
        (archive.hour_ms, archive.hour_ms, true, archive.gpu_ms, archive.category),
        archive.hour_ms + one_hour_ms() >= of_hours.at_ms
    from state.ledger_archive as archive
    inner join of_hours using (gpu_uuid, gpu_instance, hour_ms)
),

last_ones as (
    select gpu_uuid, gpu_instance, max_by(struct_pack(job_run_key, category), place) as last_one
    from segments
    where is_at_end
    group by gpu_uuid, gpu_instance
),

known as (
    select segments.gpu_uuid, segments.gpu_instance, max_by(segments.category, segments.place) as category
    from segments
    inner join last_ones using (gpu_uuid, gpu_instance)
    where
        segments.job_run_key is not distinct from last_ones.last_one.job_run_key
        and segments.category <> 'unknown'
        and last_ones.last_one.category = 'unknown'
    group by segments.gpu_uuid, segments.gpu_instance
)

select
    units.cluster,
    units.node,
    units.gpu_uuid,
    units.gpu_instance,
    units.gpu_index,
    units.gpu_model,
    units.mig_profile,
    (units.share_hi - units.share_lo) / units.share_of as share_ratio,
    units.at_ms,
    coalesce(known.category, last_ones.last_one.category) as category,
    categories."group",
    last_ones.last_one.job_run_key as job_run_key
from units
left join last_ones using (gpu_uuid, gpu_instance)
left join known using (gpu_uuid, gpu_instance)
left join reference.gpu_second_categories as categories
    on coalesce(known.category, last_ones.last_one.category) = categories.category
