-- The events of jobs that number their attempts, of the runs in this build.
-- grain: event_id
-- attempt: as given, unless the number comes again in a later job run (temp.renumbered_events), or only occurs after its
--  hold (temp.event_numbers)
-- job_run_start_ms: of the job run of its name that is nearest to it
-- materialised: inline, since it is as wide as the events, and who asks again asks little
select * from temp.given_events
anti join (select distinct cluster, run_id from temp.renumbered_events) using (cluster, run_id)
union all by name
select * from temp.renumbered_events
