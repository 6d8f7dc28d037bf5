-- The events of Google's library, which writes where steps start alone, with their ends. A step ends where the next one
-- starts; the last one of a life is proven by a save of it or by the end of the job.
-- grain: none (a save and what it proves have one event_id)
-- skip_if_empty: temp.numbered_events where source = 'goodput-events', temp.inferred_events where source = 'goodput-events'
with placed as (
    select * exclude (job_run_start_ms) from temp.numbered_events
    union all by name
    select * from temp.inferred_events
),

google as (
    select
        *,
        min(start_ms) filter (where event = 'step.start') over life as first_step_ms,
        max(step) filter (where event = 'step.start') over life as last_step,
        min(end_ms) filter (where event = 'job.end') over life as job_end_ms,
        min(end_ms) filter (where event = 'step.start') over later as next_ms,
        min(step) filter (where event = 'step.start') over later as next_step,
        min(start_ms) filter (where phase = 'ckpt_save') over later as save_ms,
        max(step) filter (where phase = 'ckpt_save') over earlier as saved_step
    from placed
    where source = 'goodput-events'
    window
        life as (partition by cluster, run_id, attempt),
        later as (
            partition by cluster, run_id, attempt order by start_ms, end_ms, event_place(event), step, event_id
            rows between 1 following and unbounded following
        ),
        earlier as (
            partition by cluster, run_id, attempt order by start_ms, end_ms, event_place(event), step, event_id
            rows between unbounded preceding and 1 preceding
        )
),

google_steps as (
    select
        * replace (
            'step' as event,
            coalesce(next_step - 1, step) as step,
            coalesce(next_ms, least(save_ms, job_end_ms)) as end_ms,
            from_ms(coalesce(next_ms, least(save_ms, job_end_ms))) as ts,
            (coalesce(next_ms, least(save_ms, job_end_ms)) - start_ms) / 1000.0 as dur_s
        )
    from google
    where
        event = 'step.start'
        and coalesce(next_step > step, step = last_step)
        and coalesce(next_ms, least(save_ms, job_end_ms)) > start_ms
),

-- a save waits for the one before it, and the end of a job for all of them
google_durable as (
    select * replace ('ckpt.durable' as event, saved_step as step, null as phase, null as dur_s, end_ms as start_ms)
    from google
    where saved_step is not null and (phase = 'ckpt_save' or event = 'job.end')
)

select * exclude (
    first_step_ms, last_step, job_end_ms, next_ms, next_step, save_ms, saved_step
)
from (
    select * from google_steps
    union all by name
    select * from google_durable
    union all by name
    select * from google
    -- the first data load blocks; the others run in parallel with the steps
    where event <> 'step.start' and not (coalesce(phase, '') = 'data_wait' and coalesce(end_ms > first_step_ms, false))
)
