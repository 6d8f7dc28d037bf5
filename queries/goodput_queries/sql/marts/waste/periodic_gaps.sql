-- Gaps and pauses of a job run that repeat at a regular interval, by what they coincide with, or over all of them where
-- no kind alone is regular: gang gaps, and pauses that the job declared and readings do not show (GPUs spin in a barrier, or
-- it is over between two readings). Works on telemetry alone. Regular: the distances of the middles of the gaps lie within threshold period_jitter_ratio of
-- one period, more often than gaps at random times would.
-- grain: job_run_key, coincides
-- access: team
-- rule: periodic_gaps
-- gpu_uuid: of a gang of one GPU; node: of a gang on one node
-- start_at, end_at: of the first and the last of the regular gaps
-- coincides: of most of the gaps, as in marts.gang_gaps; where none has most, all of them, separated by commas
-- period_s: median distance
-- gaps: number of regular gaps; idle_gaps: of them those that readings show; gap_s: median length of all
-- missed: distances of two or three periods
-- gpus: most GPUs that were idle, or paused
-- share_ratio: their share of the GPU time allocated to the job run in the scope, at least threshold period_min_share; of gaps
--  that readings show less one sampling interval each: they are seen from the last active reading to the next one
-- gpu_ms, cost: of the regular gaps as they are seen; null without a price
-- score: -log10 of the probability of such regularity at random times, at most (Chernoff's bound x number of distances)
-- confidence: that of most of its gaps
select found.*
from intermediate.int_periodic_gaps as found
left join intermediate.int_job_run_owners as owners using (job_run_key)
where of_owner(owners.team, owners.user_name, owners.run_key, owners.partition)
