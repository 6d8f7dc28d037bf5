-- Running jobs whose steps have stopped coming: no step for far longer than the attempt's own rhythm, although its job events
-- are still followed. It needs neither scheduler nor dumps, and is known long before the job fails or threshold silent_log_min_ms
-- ends the attempt. Steps come in a rhythm from threshold stall_min_steps on. Not where the job declares a phase for the time, and
-- not where marts.hangs names the operation. Where its GPUs go on working, as in an evaluation that no event declares, it is a
-- finding from threshold silent_log_min_ms on: a hung collective keeps a GPU active, but draws a fraction of the power of a step.
-- grain: attempt_key
-- skip_if_empty: intermediate.int_train_steps
-- rule: no_step
-- start_at: end of the last step; end_at: null, it lasts: to the end of what is known of the cluster
-- gpu_ms: their time without a step and without a declared phase, to where job events are followed: to the last event of any job
--  from a source of the same kind, or the last answer of the live sources of the kind, where all of them answer; cost: of it, null
--  without a price
-- score: that time over the shortest time that is a finding
-- effect: gang: it has threshold gang_page_gpus GPUs, has no step for threshold gang_page_ms, and is not known to work
-- confidence: Likely where its GPUs stopped working; Not confirmed where they work, or where their power is not read. It says
--  that nothing comes, not why
with running as (
    select attempts.*, clusters.as_of_ms
    from intermediate.int_attempts as attempts
    inner join intermediate.int_clusters as clusters using (cluster)
    where
        attempts.end_ms is null
        and attempts.has_events
        and in_window(clusters.as_of_ms, clusters.as_of_ms + 1)
        and of_owner(attempts.team, attempts.user_name, attempts.run_key, attempts.partition)
        and in_place(attempts.cluster, null, null, null)
),

distances as (
    select
        attempt_key,
        step,
        end_ms,
        end_ms - lag(end_ms) over (partition by attempt_key order by end_ms) as distance_ms
    from intermediate.int_train_steps
    semi join running using (attempt_key)
),

rhythms as (
    select
        attempt_key,
        median(distance_ms) as usual_ms,
        max(distance_ms) as longest_ms,
        max(end_ms) as last_ms,
        max(step) as last_step
    from distances
    group by attempt_key
    having count(distance_ms) >= threshold('stall_min_steps')
),

places as (
    select job_run_key, min(place) as place
    from intermediate.int_event_lives
    where job_run_key is not null
    group by job_run_key
),

-- where all live sources of a kind answer, nothing that they would bring is missing
answers as (
    select event_source_place(source) as place, min(epoch_ms(answered_at)) as answered_ms
    from marts.live_sources
    where source in ('job-events', 'job-log', 'torchtitan-structured', 'goodput-events', 'otel-spans')
    group by place
    having bool_and(state = 'ok')
),

last_events as (
    select cluster, place, max(last_ms) as last_ms
    from intermediate.int_event_spans
    group by cluster, place
),

followed as (
    select
        running.*,
        rhythms.* exclude (attempt_key),
        greatest(
            -- a gang that stands costs more than a look at one that does not
            least(
                threshold('stall_steps') * rhythms.usual_ms,
                case
                    when running.gpus >= threshold('gang_page_gpus')
                        then greatest(threshold('stall_gang_steps') * rhythms.usual_ms, threshold('gang_page_ms'))
                end
            ),
            threshold('stall_pauses') * rhythms.longest_ms,
            threshold('stall_min_ms')
        ) as least_ms,
        least(running.as_of_ms, greatest(last_events.last_ms, coalesce(answers.answered_ms, 0))) as followed_ms
    from running
    inner join rhythms using (attempt_key)
    inner join places using (job_run_key)
    inner join last_events on running.cluster = last_events.cluster and places.place = last_events.place
    left join answers on places.place = answers.place
),

declared as (
    select
        followed.attempt_key,
        sum(
            least(coalesce(timeline.end_ms, followed.followed_ms), followed.followed_ms)
            - greatest(timeline.start_ms, followed.last_ms)
        ) as declared_ms
    from followed
    inner join intermediate.int_run_timeline as timeline
        on followed.attempt_key = timeline.attempt_key
        and timeline.start_ms < followed.followed_ms
        and coalesce(timeline.end_ms, followed.followed_ms) > followed.last_ms
        and timeline.category in (
            'checkpoint_save', 'restore', 'data_stall', 'other_declared', 'startup', 'gang_wait', 'suspended', 'teardown'
        )
    group by followed.attempt_key
),

quiet as materialized (
    select followed.*, followed.followed_ms - followed.last_ms - coalesce(declared.declared_ms, 0) as quiet_ms
    from followed
    left join declared using (attempt_key)
    where
        followed.followed_ms - followed.last_ms - coalesce(declared.declared_ms, 0) >= followed.least_ms
        and not exists (
            from marts.hangs as hangs
            where hangs.run_key = followed.run_key and hangs.attempt = followed.attempt
        )
),

power as (
    select
        quiet.attempt_key,
        avg(samples.power_w) filter (where samples.ts_ms <= quiet.last_ms) as of_steps_w,
        avg(samples.power_w) filter (
            where samples.ts_ms > greatest((quiet.last_ms + quiet.followed_ms) / 2, quiet.followed_ms - ten_minutes_ms())
        ) as now_w
    from quiet
    inner join intermediate.int_holds as holds using (job_run_key)
    inner join staging.stg_gpu_samples as samples
        on holds.gpu_uuid = samples.gpu_uuid
        and samples.gpu_instance = ''
        and samples.ts_ms > quiet.last_ms - ten_minutes_ms()
        and samples.ts_ms <= quiet.followed_ms
    where holds.gpu_instance = '' and samples.ts >= from_ms((select min(last_ms) - ten_minutes_ms() from quiet))
    group by quiet.attempt_key, samples.gpu_uuid
),

work as (
    select attempt_key, sum(now_w) / nullif(sum(of_steps_w), 0) as work_ratio
    from power
    where now_w is not null and of_steps_w is not null
    group by attempt_key
),

stalled as materialized (
    select
        quiet.* exclude (least_ms),
        case
            when work.work_ratio >= threshold('stall_work_ratio') then greatest(quiet.least_ms, threshold('silent_log_min_ms'))
            else quiet.least_ms
        end as least_ms,
        work.work_ratio
    from quiet
    left join work using (attempt_key)
),

last_activity as (
    select stalled.attempt_key, activity.gpu_uuid, arg_max(activity.is_active, activity.start_ms) as is_active
    from stalled
    inner join intermediate.int_holds as holds using (job_run_key)
    inner join intermediate.int_gpu_activity as activity
        on holds.gpu_uuid = activity.gpu_uuid
        and holds.gpu_instance = activity.gpu_instance
        and activity.end_ms > stalled.last_ms
        and activity.start_ms < stalled.followed_ms
    group by stalled.attempt_key, activity.gpu_uuid
),

activity as (
    select attempt_key, count(*) as read_gpus, count(*) filter (where is_active) as active_gpus
    from last_activity
    group by attempt_key
)

select
    'no_step' as rule,
    stalled.cluster,
    null::varchar as node,
    null::varchar as gpu_uuid,
    stalled.job_run_key,
    stalled.attempt_key,
    stalled.run_key,
    stalled.run_id,
    stalled.team,
    from_ms(stalled.last_ms) as start_at,
    null::timestamp as end_at,
    stalled.last_step,
    stalled.gpus::bigint as gpus,
    (stalled.gpus * stalled.quiet_ms)::bigint as gpu_ms,
    (stalled.gpus * stalled.quiet_ms / 3600000.0 * prices.price_per_gpu_h)::double as cost,
    (stalled.quiet_ms / stalled.least_ms)::double as score,
    case
        when
            stalled.gpus >= threshold('gang_page_gpus')
            and stalled.quiet_ms >= threshold('gang_page_ms')
            and coalesce(stalled.work_ratio < threshold('stall_work_ratio'), true)
            then 'gang'
    end as effect,
    case when stalled.work_ratio < threshold('stall_work_ratio') then 'Likely' else 'Not confirmed' end as confidence,
    format(
        'no step for {:.0f} s after step {}, usual one every {:.1f} s (longest {:.0f} s): hung or stalled',
        stalled.quiet_ms / 1000, stalled.last_step, stalled.usual_ms / 1000, stalled.longest_ms / 1000
    )
    || coalesce('; ' || activity.active_gpus || ' of ' || counted(activity.read_gpus, 'GPU') || ' that are read still active', '')
    || coalesce(format(', at {:.0f} % of their power in steps', 100 * stalled.work_ratio), '')
    || case
        when stalled.work_ratio >= threshold('stall_work_ratio') then ': work that no event declares looks the same'
        else ''
    end as evidence
from stalled
left join activity using (attempt_key)
left join intermediate.int_job_run_prices as prices using (job_run_key)
where stalled.quiet_ms >= stalled.least_ms
