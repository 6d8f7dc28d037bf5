-- The events of the runs in this build, with their attempt: given, or inferred where events do not number it.
-- grain: none (what Google's library writes may prove more than one thing)
-- materialised: inline, since its rows are in temporary tables already
select * exclude (job_run_start_ms) from temp.numbered_events where source <> 'goodput-events'
union all by name
select * from temp.inferred_events where source <> 'goodput-events'
union all by name
select * from temp.google_events
