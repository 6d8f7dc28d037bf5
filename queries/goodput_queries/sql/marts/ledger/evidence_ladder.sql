-- Evidence level of the clusters and the time range in view: the highest level that covers at least half of the time.
-- It decides what the first tile shows. Scope: window and cluster alone; finer filters do not change the level. To who
-- sees some teams only it says what their time was: the capacity is what they had.
-- grain: none (one row)
-- evaluated: first
-- access: team
-- rung: goodput (attempts that report steps or serve requests hold at least half of the allocated time), active_while_allocated (a
--  scheduler or labels say who had at least half of it), gpu_activity
-- ratio: of capacity; of the allocated time that readings cover, inferred holds left out; of the capacity that readings
--  cover. Null: coverage is under half, or there is no such time
-- coverage: share of the allocated time (goodput: in attempts that report steps or serve; active_while_allocated: covered by
--  readings), or of the capacity (gpu_activity), that the ratio is computed from
-- next_step: the source to add for the next level, or for missing readings; null: none
-- capacity_ms, allocated_ms, reported_ms: capacity; of it allocated; of that in attempts that report steps or serve
-- owned_ms: allocated by a scheduler or labels, so that it is not inferred from activity
-- observed_ms, active_ms: of the capacity, what readings cover and what they show to be active
-- owned_observed_ms, owned_active_ms: the same of owned_ms
with mine as (
    select job_run_key from intermediate.int_job_run_owners where of_teams(team)
),

clipped as (
    select * exclude (gpu_ms) replace (scope_start(start_ms) as start_ms, scope_end(end_ms) as end_ms)
    from intermediate.int_ledger_segments
    where
        hour_ms in (
            scope_from_ms() // one_hour_ms() * one_hour_ms(),
            coalesce(chosen_to_ms(), 0) // one_hour_ms() * one_hour_ms()
        )
        and not is_whole_hour(hour_ms)
        and in_window(start_ms, end_ms)
        and in_cluster(cluster)
        and (sees_all_teams() or job_run_key in (from mine))
),

cut_hours as (select job_run_key, attempt_key, category, phase, gpu_ms from ledger_of('clipped')),

ledger as (
    select job_run_key, attempt_key, category, is_serving(phase) as is_serving, sum(gpu_ms) as gpu_ms
    from (
        select job_run_key, attempt_key, category, phase, gpu_ms
        from marts.ledger_hourly_by_node
        where
            is_whole_hour(hour_ms)
            and in_cluster(cluster)
            and (sees_all_teams() or job_run_key in (from mine))
        union all
        from cut_hours
    )
    group by all
),

with_steps as (
    select distinct attempt_key
    from intermediate.int_train_steps
    semi join ledger using (attempt_key)
    union
    -- archived hours tell it where the events are not kept
    select attempt_key from state.ledger_archive where is_kept_step(category) and attempt_key is not null
),

-- serving telemetry counts as steps do, for all that its job run held
with_serving as (select distinct job_run_key from ledger where is_serving and job_run_key is not null),

sums as (
    select
        coalesce(sum(gpu_ms), 0)::bigint as capacity_ms,
        coalesce(sum(gpu_ms) filter (where categories.group = 'held'), 0)::bigint as allocated_ms,
        coalesce(
            sum(gpu_ms) filter (
                where categories.group = 'held'
                    and (with_steps.attempt_key is not null or with_serving.job_run_key is not null or is_serving)
            ),
            0
        )::bigint as reported_ms,
        coalesce(sum(gpu_ms) filter (where runs.ownership in ('scheduler', 'label')), 0)::bigint as owned_ms,
        coalesce(sum(gpu_ms) filter (where is_useful(category)), 0)::bigint as useful_ms
    from ledger
    inner join reference.gpu_second_categories as categories using (category)
    left join intermediate.int_job_runs as runs using (job_run_key)
    left join with_steps using (attempt_key)
    left join with_serving using (job_run_key)
),

units as (
    select *, coalesce(end_ms, forever_ms()) as until_ms, read_instance(gpu_instance) as read_as
    from intermediate.int_gpu_units
    where in_cluster(cluster)
),

readings as (
    select
        units.gpu_uuid,
        units.gpu_instance,
        units.share_lo,
        units.share_hi,
        units.share_of,
        activity.is_active,
        greatest(activity.start_ms, units.start_ms, scope_start(activity.start_ms)) as start_ms,
        least(activity.end_ms, units.until_ms, scope_end(activity.end_ms)) as end_ms
    from intermediate.int_gpu_activity as activity
    inner join units on activity.gpu_uuid = units.gpu_uuid and activity.gpu_instance = units.read_as
    where in_window(activity.hour_ms, activity.hour_ms + one_hour_ms())
),

seen as (
    select
        coalesce(sum(share_ms(start_ms, end_ms, share_lo, share_hi, share_of)), 0)::bigint as observed_ms,
        coalesce(sum(share_ms(start_ms, end_ms, share_lo, share_hi, share_of)) filter (where is_active), 0)::bigint
            as active_ms
    from readings
    where end_ms > start_ms and sees_all_teams()
),

-- of any metric
read as (
    select count(*) > 0 as has_readings
    from (
        select 1
        from intermediate.int_gpu_metrics as metrics
        semi join units using (gpu_uuid)
        where in_window(metrics.hour_ms, metrics.hour_ms + one_hour_ms()) and sees_all_teams()
        limit 1
    )
),

owned_seen as (
    select
        readings.* exclude (start_ms, end_ms),
        greatest(readings.start_ms, holds.start_ms) as start_ms,
        least(readings.end_ms, coalesce(holds.end_ms, forever_ms())) as end_ms
    from readings
    inner join intermediate.int_holds as holds using (gpu_uuid, gpu_instance)
    inner join intermediate.int_job_runs as runs using (job_run_key)
    where
        runs.ownership in ('scheduler', 'label')
        and (sees_all_teams() or holds.job_run_key in (from mine))
        and holds.start_ms < readings.end_ms
        and coalesce(holds.end_ms, forever_ms()) > readings.start_ms
        -- asked only where the steps of jobs say too little
        and (select 2 * reported_ms < allocated_ms from sums)
),

owned as (
    select
        coalesce(sum(share_ms(start_ms, end_ms, share_lo, share_hi, share_of)), 0)::bigint as owned_observed_ms,
        coalesce(sum(share_ms(start_ms, end_ms, share_lo, share_hi, share_of)) filter (where is_active), 0)::bigint
            as owned_active_ms
    from owned_seen
    where end_ms > start_ms
),

chosen as (
    select
        *,
        case
            when reported_ms > 0 and 2 * reported_ms >= allocated_ms then 'goodput'
            when owned_ms > 0 and 2 * owned_ms >= allocated_ms then 'active_while_allocated'
            else 'gpu_activity'
        end as rung
    from sums
    cross join seen
    cross join read
    cross join owned
),

measured as (
    select
        *,
        case rung
            when 'goodput' then reported_ms / nullif(allocated_ms, 0)
            when 'active_while_allocated' then owned_observed_ms / nullif(owned_ms, 0)
            else observed_ms / nullif(capacity_ms, 0)
        end as coverage,
        case rung
            when 'goodput' then useful_ms / nullif(capacity_ms, 0)
            when 'active_while_allocated' then owned_active_ms / nullif(owned_observed_ms, 0)
            else active_ms / nullif(observed_ms, 0)
        end as measured_ratio
    from chosen
)

select
    rung,
    case when coverage >= 0.5 then measured_ratio end as ratio,
    coverage,
    * exclude (rung, coverage, useful_ms, measured_ratio, has_readings),
    case
        when rung = 'goodput' then null
        when coalesce(coverage, 0) < 0.5 and observed_ms > 0
            then 'Read GPU telemetry of all nodes and of the whole time: it covers a part'
        when coalesce(coverage, 0) < 0.5 and has_readings
            then 'Read the activity of GPUs, too (DCGM_FI_DEV_GPU_UTIL): their telemetry has none'
        when coalesce(coverage, 0) < 0.5 then 'Add GPU telemetry: [[collect]] source = "nvml" or "dcgm"'
        when rung = 'active_while_allocated' then 'Let jobs report their steps: job events, five lines of Python'
        else 'Add the scheduler, [[collect]] source = "slurm" or "kubernetes"; without one, let jobs write job events'
    end as next_step
from measured
