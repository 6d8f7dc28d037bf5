-- Samples of serving engines in and around this pass: what is known of an engine at one moment, and since the one before.
-- grain: engine_id, ts_ms
-- before_ms: the sample before, of the same source; null: there is none within serving_gap_max_ms
-- usual_ms: median distance of the samples in the ten minutes before and after
-- is_busy: a request ran or waited, or a counter of tokens or requests grew
-- is_restart: a counter fell: the engine began again
-- is_counted: a counter is known here and before, which shows whether anything happened between
with samples as (
    select
        source, cluster, endpoint, engine, ts_ms,
        sum(value) filter (metric = 'requests_running') as running,
        sum(value) filter (metric = 'requests_waiting') as waiting,
        sum(value) filter (metric = 'generation_tokens') as generated,
        sum(value) filter (metric = 'prompt_tokens') as prompted,
        sum(value) filter (metric = 'requests_finished') as finished
    from staging.stg_serving_samples
    where
        ts >= from_ms(build_from_ms() - one_hour_ms())
        and ts < from_ms(build_to_ms() + threshold('serving_gap_max_ms')::bigint + ten_minutes_ms())
        and metric in ('requests_running', 'requests_waiting', 'generation_tokens', 'prompt_tokens', 'requests_finished')
    group by all
),

-- of two sources of an engine the one with more samples in each ten minutes is used
chosen as (
    select *
    from (
        select
            samples.*,
            engines.engine_id,
            count(*) over (partition by engines.engine_id, samples.source, samples.ts_ms // ten_minutes_ms()) as in_ten_minutes
        from samples
        inner join temp.serving_engines as engines
            using (cluster, endpoint, engine)
    )
    qualify rank() over (
        partition by engine_id, ts_ms // ten_minutes_ms() order by in_ten_minutes desc, source
    ) = 1
),

followed as (
    select
        * exclude (in_ten_minutes),
        case
            when
                lag(source) over in_order = source
                and ts_ms - lag(ts_ms) over in_order <= threshold('serving_gap_max_ms')
                then lag(ts_ms) over in_order
        end as before_ms,
        lag(running) over in_order as running_before,
        lag(waiting) over in_order as waiting_before,
        lag(generated) over in_order as generated_before,
        lag(prompted) over in_order as prompted_before,
        lag(finished) over in_order as finished_before
    from chosen
    window in_order as (partition by engine_id order by ts_ms)
)

select
    engine_id,
    ts_ms,
    before_ms,
    coalesce(
        median(ts_ms - before_ms) over (
            partition by engine_id order by ts_ms
            range between ten_minutes_ms() preceding and ten_minutes_ms() following exclude current row
        ),
        ts_ms - before_ms
    ) as usual_ms,
    coalesce(running > 0, false)
    or coalesce(waiting > 0, false)
    or before_ms is not null
    and greatest(
        counter_increase(generated, generated_before),
        counter_increase(prompted, prompted_before),
        counter_increase(finished, finished_before),
        0
    ) > 0 as is_busy,
    coalesce(running_before > 0, false) or coalesce(waiting_before > 0, false) as was_busy,
    coalesce(generated < generated_before, false)
    or coalesce(prompted < prompted_before, false)
    or coalesce(finished < finished_before, false) as is_restart,
    coalesce(generated = generated_before or prompted = prompted_before or finished = finished_before, false)
        as is_counted
from followed
where coalesce(running, waiting, generated, prompted, finished) is not null
