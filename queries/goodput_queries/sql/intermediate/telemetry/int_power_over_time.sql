-- Power of the GPUs of the scope's place in buckets of the scope's bucket_ms, by node, by rack and by team, of all teams:
-- another team is a filter of these rows. A bucket finer than ten
-- minutes is read from the readings, others from the ten-minute roll-up. What no GPU has a reading of has no power:
-- missing is not 0.
-- grain: level, cluster, name, availability, start_ms
-- evaluated: first
-- level: node, rack, team
-- name: null: the rack, or the team, is not known
-- availability: of level team: held, free, not_available; null: the ledger does not say
-- start_ms: start of the bucket, epoch ms
-- gpus: GPUs in the inventory in the bucket; read_gpus: of them those with a power reading. GPUs that several teams had
--  in the bucket count for each of them
-- power_w: sum of the mean power of the GPUs that were read; of level team in proportion to the time that it had them
-- here_ms, read_ms: GPU time in the bucket, and of it that in ten minutes (or finer buckets) with a power reading
-- coverage_ratio: read_ms / here_ms
-- joined and grouped by numbers of GPUs: their names take several times as long
with units as materialized (
    select gpu_uuid, (row_number() over ())::integer as unit
    from (select distinct gpu_uuid from intermediate.int_gpu_inventory)
),

fine as (
    select
        gpu_uuid,
        bucket_start(ts_ms) as start_ms,
        avg(power_w) as power_w,
        scope_bucket_ms() as read_ms
    from staging.stg_gpu_samples
    where
        scope_bucket_ms() < ten_minutes_ms()
        and ts >= from_ms(scope_from_ms())
        and ts < from_ms(coalesce(chosen_to_ms(), 4102444800000))
        and power_w is not null
    group by source, gpu_uuid, gpu_instance, bucket_start(ts_ms)
    -- of two sources the one with more readings
    qualify row_number() over (
        partition by gpu_uuid, gpu_instance, bucket_start(ts_ms) order by count(*) desc, source
    ) = 1
),

-- power is that of the device, which its instances repeat
readings as (
    select units.unit, fine.start_ms, max(fine.power_w) as power_w, max(fine.read_ms) as read_ms
    from fine
    inner join units using (gpu_uuid)
    group by units.unit, fine.start_ms
    union all
    select
        units.unit,
        bucket_start(powers.start_ms),
        avg(powers.power_w),
        ten_minutes_ms() * count(powers.power_w)
    from marts.device_power as powers
    inner join units using (gpu_uuid)
    where scope_bucket_ms() >= ten_minutes_ms() and powers.power_w is not null
    group by units.unit, bucket_start(powers.start_ms)
),

stays as (
    select
        stays.cluster,
        stays.node,
        units.unit,
        count(*) over (partition by stays.gpu_uuid) > 1 as is_moved,
        scope_start(greatest(coalesce(stays.start_ms, 0), clusters.first_ms)) as start_ms,
        scope_end(least(coalesce(stays.end_ms, clusters.as_of_ms), clusters.as_of_ms)) as end_ms
    from intermediate.int_gpu_inventory as stays
    inner join intermediate.int_clusters as clusters using (cluster)
    inner join units using (gpu_uuid)
    where in_place(stays.cluster, stays.node, stays.gpu_uuid, stays.gpu_model)
),

cut as (
    select *, unnest(bucket_starts(start_ms, end_ms)) as bucket_ms from stays where end_ms > start_ms
),

buckets as materialized (
    select
        cut.cluster,
        cut.node,
        cut.unit,
        cut.is_moved,
        cut.bucket_ms as start_ms,
        ms_in_bucket(cut.start_ms, cut.end_ms, cut.bucket_ms) as here_ms,
        readings.power_w,
        least(coalesce(readings.read_ms, 0), here_ms) as read_ms
    from cut
    left join readings on cut.unit = readings.unit and cut.bucket_ms = readings.start_ms
),

owners as materialized (
    select job_run_key, team, dense_rank() over (order by team)::integer as team_number
    from intermediate.int_job_run_owners
),

owned as materialized (
    select
        units.unit,
        pieces.bin_ms as start_ms,
        owners.team_number,
        -- a stretch of steps is allocated, whatever its categories
        coalesce(categories."group", 'held') as availability,
        sum(pieces.gpu_ms) as gpu_ms
    from intermediate.int_segment_bins as pieces
    inner join units using (gpu_uuid)
    left join reference.gpu_second_categories as categories using (category)
    left join owners using (job_run_key)
    group by all
),

shares as (
    select
        owned.unit, owned.start_ms, teams.team, owned.availability,
        owned.gpu_ms / sums.gpu_ms as share_ratio
    from owned
    inner join (select unit, start_ms, sum(gpu_ms) as gpu_ms from owned group by unit, start_ms) as sums
        using (unit, start_ms)
    left join (select distinct team_number, team from owners) as teams using (team_number)
),

named as (
    select 'node' as level, cluster, node as name, null as availability, unit, is_moved, start_ms, here_ms, power_w, read_ms
    from buckets
    union all
    select 'rack', buckets.cluster, racks.rack, null, unit, is_moved, start_ms, here_ms, power_w, read_ms
    from buckets
    left join staging.stg_node_racks as racks using (cluster, node)
    union all
    select
        'team', buckets.cluster, shares.team, shares.availability, unit, is_moved, start_ms,
        buckets.here_ms * coalesce(shares.share_ratio, 1),
        buckets.power_w * coalesce(shares.share_ratio, 1),
        buckets.read_ms * coalesce(shares.share_ratio, 1)
    from buckets
    left join shares using (unit, start_ms)
),

-- a GPU that left a place and came back in a bucket counts once; others need not be looked at one by one
by_unit as (
    select * exclude (unit, is_moved) from named where not is_moved
    union all by name
    select
        level, cluster, name, availability, start_ms,
        sum(power_w) as power_w,
        sum(here_ms) as here_ms,
        sum(read_ms) as read_ms
    from named
    where is_moved
    group by level, cluster, name, availability, start_ms, unit
)

select
    level,
    cluster,
    name,
    availability,
    start_ms,
    count(*) as gpus,
    count(power_w) as read_gpus,
    sum(power_w) as power_w,
    sum(here_ms)::double as here_ms,
    sum(read_ms)::double as read_ms,
    sum(read_ms) / nullif(sum(here_ms), 0) as coverage_ratio
from by_unit
group by level, cluster, name, availability, start_ms
