-- One step of a replayed trace beside the ideal one: the operations of the data parallel rank whose compute ended last, in
-- the step nearest to the median.
-- grain: run_key, stage, operation, place
-- access: team
-- step, dp_rank: which; stage: pipeline stage; operation; place: among those of its kind and stage, from 0
-- start_s, end_s: after the start of the step, as recorded; ideal_start_s, ideal_end_s: in the ideal step
select
    traces.cluster || '/' || traces.run_id as run_key,
    operations.* exclude (source, trace_id)
from staging.stg_replayed_operations as operations
inner join staging.stg_step_replays as traces using (source, trace_id)
where
    in_cluster(traces.cluster)
    and (
        sees_all_teams()
        or traces.cluster || '/' || traces.run_id in (
            select run_key from intermediate.int_runs_of_one_team where of_teams(team)
        )
    )
    and in_run(traces.cluster || '/' || traces.run_id)
