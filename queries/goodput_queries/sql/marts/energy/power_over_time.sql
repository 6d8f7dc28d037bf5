-- Power of the scope's GPUs in buckets of the scope's bucket_ms, by node, by rack and by team. A bucket finer than ten
-- minutes is read from the readings, others from the ten-minute roll-up. What no GPU has a reading of has no power:
-- missing is not 0.
-- grain: level, cluster, name, availability, start_ms
-- level: node, rack, team
-- name: null: the rack, or the team, is not known
-- availability: of level team: held, free, not_available; null: the ledger does not say
-- start_ms: start of the bucket, epoch ms
-- gpus: GPUs in the inventory in the bucket; read_gpus: of them those with a power reading. GPUs that several teams had
--  in the bucket count for each of them
-- power_w: sum of the mean power of the GPUs that were read; of level team in proportion to the time that it had them
-- here_ms, read_ms: GPU time in the bucket, and of it that in ten minutes (or finer buckets) with a power reading
-- coverage_ratio: read_ms / here_ms
select *
from intermediate.int_power_over_time
where
    level <> 'team'
    or of_teams(name) and in_team(name)
