-- How directly a source reports steps and phases; the lowest rank present is used
-- (docs/accounting-rules.md: Attempts, steps and phases):
-- the job's own events, spans and events of libraries, structured logs, lines of text, exports of metrics.
create or replace macro event_source_place(source) as (
    case source
        when 'goodput-events' then 2
        when 'otel-spans' then 2
        when 'torchtitan-structured' then 3
        when 'mlperf' then 3
        when 'job-log' then 4
        when 'wandb-history' then 5
        when 'mlflow' then 5
        when 'tensorboard' then 5
        when 'kubernetes' then 5
        when 'kubernetes-api' then 5
        else 1
    end
);

-- What a source of this place is called.
create or replace macro event_source_kind(place) as (
    case place
        when 1 then 'job events'
        when 2 then 'events of a library'
        when 3 then 'structured log'
        when 4 then 'text log'
        else 'export of metrics'
    end
);

-- Order of a job's events of one moment: what ends comes before what begins.
create or replace macro event_place(event) as (
    case event when 'job.end' then 1 when 'job.start' then 2 when 'phase.start' then 3 when 'step.start' then 3 else 0 end
);

-- How far what goes from first_ms to last_ms lies off a hold; 0: they meet.
create or replace macro off_hold_ms(first_ms, last_ms, hold_start_ms, hold_end_ms) as (
    greatest(0, hold_start_ms - last_ms, first_ms - hold_end_ms)
);

-- The same of one event, by its middle. A start may be a second early, since clocks of jobs and schedulers differ
-- by that much.
create or replace macro event_off_hold_ms(event, event_start_ms, event_end_ms, hold_start_ms, hold_end_ms) as (
    greatest(
        0,
        hold_start_ms - (event_start_ms + event_end_ms) // 2 - case when event = 'job.start' then 1000 else 0 end,
        (event_start_ms + event_end_ms) // 2 - hold_end_ms
    )
);

-- Whether events that go from first_ms to last_ms can be of a job run of their name: always where it is the
-- scheduler's number, else near its hold.
create or replace macro is_near_hold(is_id, first_ms, last_ms, hold_start_ms, hold_end_ms) as (
    is_id
    or (
        last_ms >= hold_start_ms - threshold('event_off_hold_max_ms')
        and first_ms <= hold_end_ms + threshold('event_off_hold_max_ms')
    )
);

-- The same of one event, which a job run has on its nodes where the name alone does not say whose it is.
create or replace macro is_event_near_hold(is_id, nodes, host, first_ms, last_ms, hold_start_ms, hold_end_ms) as (
    is_near_hold(is_id, first_ms, last_ms, hold_start_ms, hold_end_ms)
    and (is_id or host is null or list_contains(nodes, host))
);

-- Whether an event shows that its attempt was at work; the others may come after its end.
create or replace macro begins_attempt(event) as (event not in ('ckpt.durable', 'failure', 'job.end'));
