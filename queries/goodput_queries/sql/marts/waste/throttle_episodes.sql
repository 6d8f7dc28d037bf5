-- Intervals in which a reason reduced a GPU's clocks, one row a reason, with clock, power and temperature.
-- A power cap at full power is normal for a busy GPU and is not a loss.
-- grain: gpu_uuid, reason, start_at
-- access: team
-- evidence: clock event reasons; throttle counters where a GPU's readings carry no reasons
-- duration_s: from the first reading with the bit, less one interval, to the last; of counters what they gained
-- counts_as_loss: whether it can cost time: a power cap only where the clock is low and the GPU is at work
-- sm_clock_hz: median under the bit
-- booked_gpu_ms: what the ledger books as throttled on this GPU in that time
-- verdict: interpretation of the episode
from intermediate.int_throttle_episodes
where
    in_cluster(cluster)
    and in_node(node)
    and in_run(run_key)
    and of_teams(team)
    and in_team(team)
