-- What each worker of a replayed trace makes of the ideal step alone: all others take the ideal time.
-- Effects of workers overlap and do not add up: steps take as long as the slowest data parallel rank.
-- grain: run_key, dp_rank, stage
-- access: team
-- dp_rank: data parallel rank; stage: pipeline stage
-- step_s: mean step with this worker as recorded; slowdown_ratio: over the ideal step
-- excess_share: of the mean step without delays, that this worker costs alone
-- place: 1: costs most
select
    replays.run_key,
    parts.dp_rank,
    parts.stage,
    parts.step_s,
    parts.step_s / nullif(replays.ideal_s, 0) as slowdown_ratio,
    (parts.step_s - replays.ideal_s) / nullif(replays.undelayed_s, 0) as excess_share,
    row_number() over (partition by replays.run_key order by parts.step_s desc, parts.dp_rank, parts.stage) as place
from staging.stg_replayed_parts as parts
inner join staging.stg_step_replays as traces using (source, trace_id)
inner join marts.pipeline_replays as replays using (cluster, run_id)
where parts.part = 'worker'
