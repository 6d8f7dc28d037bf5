-- GPUs of processes by NCCL's own logs.
-- grain: none (a process has ranks of several communicators)
-- skip_if_empty: raw.rank_map
select cluster, node, pid, gpu_uuid, is_world, last_seen_ms
from intermediate.int_comm_processes
where gpu_uuid is not null
