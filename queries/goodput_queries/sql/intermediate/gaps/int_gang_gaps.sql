-- Idle gaps of gangs of all owners in the scope's place: marts.gang_gaps, of which another team is a filter.
-- grain: job_run_key, start_at
-- evaluated: first
-- skip_if_empty: intermediate.int_holds
-- the columns: see marts.gang_gaps
with units as materialized (
    select
        gpu_uuid,
        gpu_instance,
        (row_number() over ())::integer as unit,
        any_value(gpu_model) as gpu_model,
        any_value(mig_profile) as mig_profile,
        max((share_hi - share_lo) / share_of) as share_ratio
    from intermediate.int_gpu_units
    group by gpu_uuid, gpu_instance
),

held as (
    select
        holds.job_run_key,
        holds.cluster,
        holds.node,
        holds.gpu_uuid,
        units.* exclude (gpu_uuid, gpu_instance),
        in_place(holds.cluster, holds.node, holds.gpu_uuid, units.gpu_model) as is_in_place,
        scope_start(holds.start_ms) as start_ms,
        scope_end(coalesce(holds.end_ms, forever_ms())) as end_ms
    from intermediate.int_holds as holds
    inner join units using (gpu_uuid, gpu_instance)
    where in_window(holds.start_ms, holds.end_ms)
),

-- numbered, since a name takes several times as long to sort by
jobs as materialized (
    select
        held.job_run_key,
        (row_number() over ())::integer as job,
        any_value(held.cluster) as cluster,
        case when min(held.node) = max(held.node) then min(held.node) end as node,
        case when min(held.unit) = max(held.unit) then any_value(held.gpu_uuid) end as gpu_uuid,
        any_value(columns(['run_key', 'run_id', 'job_name', 'team', 'user_name'])),
        coalesce(any_value(owners.partition), '') as partition,
        coalesce(any_value(owners.qos), '') as qos
    from held
    left join intermediate.int_job_run_owners as owners using (job_run_key)
    group by held.job_run_key
    having bool_or(held.is_in_place)
),

numbered_holds as materialized (
    select jobs.job, held.* exclude (job_run_key, cluster, node, gpu_uuid)
    from held
    inner join jobs using (job_run_key)
),

pieces as (
    select
        holds.job,
        holds.share_ratio * holds.is_in_place::integer as share_ratio,
        greatest(islands.start_ms, holds.start_ms) as start_ms,
        least(islands.end_ms, holds.end_ms) as end_ms
    from intermediate.int_idle_islands as islands
    inner join units using (gpu_uuid, gpu_instance)
    inner join numbered_holds as holds
        on units.unit = holds.unit
        and holds.start_ms < islands.end_ms
        and holds.end_ms > islands.start_ms
    where
        islands.end_ms - islands.start_ms >= threshold('gap_list_min_ms')
        and least(islands.end_ms, holds.end_ms) - greatest(islands.start_ms, holds.start_ms)
            >= threshold('gap_list_min_ms')
),

changes as (
    select job, at_ms, sum(idle) as idle, sum(held) as held, sum(idle_share) as idle_share, sum(held_share) as held_share
    from (
        select job, start_ms as at_ms, 1 as idle, 0 as held, share_ratio as idle_share, 0 as held_share from pieces
        union all
        select job, end_ms, -1, 0, -share_ratio, 0 from pieces
        union all
        select job, start_ms, 0, 1, 0, share_ratio * is_in_place::integer from numbered_holds
        union all
        select job, end_ms, 0, -1, 0, -share_ratio * is_in_place::integer from numbered_holds
    )
    group by job, at_ms
),

cells as (
    select
        job,
        at_ms as start_ms,
        lead(at_ms) over of_job as end_ms,
        sum(columns(['idle', 'held', 'idle_share', 'held_share'])) over of_job
    from changes
    window of_job as (partition by job order by at_ms)
),

marked as (
    select
        *,
        idle > 0 and idle >= threshold('gang_gap_share') * held as is_gap,
        coalesce(lag(idle > 0 and idle >= threshold('gang_gap_share') * held) over (partition by job order by start_ms), false)
            as was_gap
    from cells
    where end_ms is not null
),

numbered as (
    select
        *,
        count_if(is_gap and not was_gap) over (partition by job order by start_ms rows unbounded preceding) as gap
    from marked
),

gaps as materialized (
    select
        job,
        gap,
        min(start_ms) as start_ms,
        max(end_ms) as end_ms,
        max(idle)::bigint as gpus,
        arg_max(held, idle)::bigint as held_gpus,
        round(sum(idle_share * (end_ms - start_ms)))::bigint as gpu_ms,
        sum(idle_share * (end_ms - start_ms)) / nullif(sum(held_share * (end_ms - start_ms)), 0) as idle_ratio
    from numbered
    where is_gap
    group by job, gap
    having max(end_ms) - min(start_ms) >= threshold('gap_list_min_ms') and gpu_ms > 0
),

kinds as (
    select *, gpus / sum(gpus) over (partition by job) as share
    from (
        select
            jobs.job,
            jobs.cluster,
            jobs.partition,
            jobs.qos,
            coalesce(holds.gpu_model, '') as gpu_model,
            coalesce(holds.mig_profile, '') as mig_profile,
            sum(holds.share_ratio) as gpus
        from numbered_holds as holds
        inner join jobs using (job)
        where holds.is_in_place
        group by all
    )
),

-- price of the gang's GPUs, weighted by the time of the gap that it applies to
prices as (
    select
        gaps.job,
        gaps.gap,
        mean_price(
            sum(
                kinds.share * overlap_ms(gaps.start_ms, gaps.end_ms, prices.from_ms, prices.to_ms)
                * prices.price_per_gpu_h::double
            ),
            sum(kinds.share * overlap_ms(gaps.start_ms, gaps.end_ms, prices.from_ms, prices.to_ms)),
            any_value(gaps.end_ms - gaps.start_ms)
        ) as price_per_gpu_h
    from gaps
    inner join kinds using (job)
    inner join intermediate.int_prices as prices on is_price_of(
        prices, kinds.cluster, kinds.gpu_model, kinds.mig_profile, kinds.partition, kinds.qos,
        gaps.start_ms, gaps.end_ms
    )
    group by gaps.job, gaps.gap
),

timeline as materialized (
    select
        jobs.job,
        case
            when timeline.category = 'failed_without_progress' then coalesce(timeline.phase, timeline.category)
            else timeline.category
        end as category,
        timeline.phase,
        timeline.start_ms,
        coalesce(timeline.end_ms, forever_ms()) as end_ms
    from intermediate.int_run_timeline as timeline
    inner join jobs using (job_run_key)
    where in_window(timeline.start_ms - threshold('gang_gap_reach_ms')::bigint, timeline.end_ms)
),

-- what is no more than the end of a pause touches many gaps: it counts where nothing else was declared
met as (
    select
        gaps.job,
        gaps.gap,
        case
            when timeline.category in ('idle_held', 'unknown', 'busy_unclassified') then 'undeclared'
            when timeline.category in (
                'productive', 'step_unsplit', 'exposed_comm', 'at_risk', 'lost_work', 'throttled', 'straggler_wait'
            ) then 'steps'
            else timeline.category
        end as category,
        any_value(timeline.phase) as phase,
        sum(greatest(0, least(gaps.end_ms, timeline.end_ms) - greatest(gaps.start_ms, timeline.start_ms)))
            / any_value(gaps.end_ms - gaps.start_ms) as covered_ratio
    from gaps
    inner join timeline
        on gaps.job = timeline.job
        and timeline.start_ms < gaps.end_ms
        and timeline.end_ms > gaps.start_ms - threshold('gang_gap_reach_ms')
    group by all
),

declared as (
    select
        job,
        gap,
        arg_max(category, (category not in ('undeclared', 'steps'), covered_ratio, category)) as category,
        arg_max(phase, (category not in ('undeclared', 'steps'), covered_ratio, category)) as phase,
        max(covered_ratio) filter (where category not in ('undeclared', 'steps')) as declared_ratio,
        max(covered_ratio) filter (where category = 'undeclared') as undeclared_ratio,
        max(covered_ratio) filter (where category = 'steps') as steps_ratio
    from met
    group by job, gap
),

-- hosts are asked only where the job explains nothing
silent as materialized (
    select gaps.job, gaps.gap, gaps.start_ms, gaps.end_ms
    from gaps
    left join declared using (job, gap)
    where declared.declared_ratio is null
),

-- between the first and the last reading inside the gap: one over much more than the gap says nothing of it
busy_hosts as (
    select job, gap, max(disk_busy_s / span_s) as busy_disks
    from (
        select
            silent.job,
            silent.gap,
            places.node,
            arg_max(samples.disk_busy_s, samples.ts_ms) - arg_min(samples.disk_busy_s, samples.ts_ms) as disk_busy_s,
            (max(samples.ts_ms) - min(samples.ts_ms)) / 1000.0 as span_s,
            any_value(silent.end_ms - silent.start_ms) / 1000.0 as gap_s
        from (
            -- by ten minutes, so that few gaps of a node need to be looked at for a reading
            select *, unnest(range(start_ms // ten_minutes_ms(), end_ms // ten_minutes_ms() + 1)) as bucket from silent
        ) as silent
        inner join jobs using (job)
        inner join (select distinct job_run_key, cluster, node from held) as places using (job_run_key)
        inner join staging.stg_host_samples as samples
            on places.cluster = samples.cluster
            and places.node = samples.node
            and silent.bucket = samples.ts_ms // ten_minutes_ms()
            and samples.ts_ms >= silent.start_ms
            and samples.ts_ms <= silent.end_ms
        where
            samples.disk_busy_s is not null
            and samples.ts >= from_ms(scope_from_ms())
            and samples.ts < scope_to_at()
        group by silent.job, silent.gap, places.node, samples.source
    )
    where span_s >= 0.5 * gap_s
    group by job, gap
),

explained as (
    select
        gaps.*,
        jobs.* exclude (job),
        case
            when declared.declared_ratio is not null
                then coalesce(case when declared.category = 'other_declared' then phases.label end, categories.label)
            when busy_hosts.busy_disks >= threshold('disk_busy_disks') then 'Host disk busy'
            when declared.steps_ratio >= coalesce(declared.undeclared_ratio, 0) then 'Training steps'
            when declared.undeclared_ratio is not null then 'Nothing declared'
        end as coincides,
        coalesce(declared.declared_ratio, declared.steps_ratio, declared.undeclared_ratio) as coincides_ratio,
        declared.declared_ratio is not null as is_declared,
        busy_hosts.busy_disks
    from gaps
    inner join jobs using (job)
    left join declared using (job, gap)
    left join busy_hosts using (job, gap)
    left join reference.gpu_second_categories as categories on declared.category = categories.category
    left join reference.phases as phases on declared.phase = phases.phase
)

select
    'gang_gap' as rule,
    explained.cluster,
    explained.node,
    explained.gpu_uuid,
    explained.job_run_key,
    explained.run_key,
    explained.run_id,
    explained.job_name,
    explained.team,
    explained.user_name,
    from_ms(explained.start_ms) as start_at,
    from_ms(explained.end_ms) as end_at,
    (explained.end_ms - explained.start_ms) / 1000.0 as gap_s,
    explained.gpus,
    explained.held_gpus,
    explained.gpu_ms,
    explained.gpu_ms / 3600000.0 * prices.price_per_gpu_h as cost,
    explained.idle_ratio as score,
    coalesce(explained.coincides, 'Nothing known') as coincides,
    case
        when explained.is_declared and explained.coincides_ratio >= threshold('gang_gap_declared_share') then 'Confirmed'
        when explained.is_declared or explained.coincides = 'Host disk busy' then 'Likely'
        else 'Not confirmed'
    end as confidence,
    case
        when explained.held_gpus = 1 then 'the GPU of the job was idle for '
        else explained.gpus || ' of ' || explained.held_gpus || ' GPUs of the job were idle together for '
    end
    || printf('%.0f', (explained.end_ms - explained.start_ms) / 1000.0) || ' s; ' || case
        when explained.is_declared and explained.coincides_ratio > 0
            then 'the job declared "' || explained.coincides || '" for '
                || printf('%.0f', 100 * explained.coincides_ratio) || ' % of it'
        when explained.is_declared then '"' || explained.coincides || '" ended just before'
        when explained.coincides = 'Host disk busy'
            then printf('%.1f', explained.busy_disks) || ' disks of a host were busy'
        when explained.coincides = 'Training steps' then 'the job reported steps meanwhile'
        when explained.coincides = 'Nothing declared' then 'the job declared nothing for that time'
        else 'no job events cover it'
    end as evidence
from explained
left join prices using (job, gap)
