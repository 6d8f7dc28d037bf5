-- Idle gaps of gangs: times in which most of the GPUs of a job run showed no activity together. A gap of many
-- GPUs is one row. Sums are of the GPUs in the scope; the gang is looked at as a whole.
-- grain: job_run_key, start_at
-- access: team
-- rule: gang_gap
-- gpu_uuid: of a gang of one GPU; node: of a gang on one node
-- start_at, end_at: as long as the share of threshold gang_gap_share was idle; cut at allocations and at the window
-- gap_s: end - start
-- gpus: most GPUs that were idle at one moment; held_gpus: that were allocated to the job run then
-- gpu_ms: idle time of the scope's GPUs inside the gap, milliseconds of a whole GPU
-- cost: at the mean price of the gang's GPUs; null without a price
-- score: share of the gang's GPU time in the gap that was idle
-- coincides: what the job declared or its hosts did meanwhile, or up to threshold gang_gap_reach_ms before
-- confidence: that the gap belongs to it: Confirmed by most of the gap, Likely by a part, or before it
select found.*
from intermediate.int_gang_gaps as found
left join intermediate.int_job_run_owners as owners using (job_run_key)
where of_owner(owners.team, owners.user_name, owners.run_key, owners.partition)
