-- Number of processes on GPUs, with the time in epoch ms.
-- ts: to filter by: the zones of the table are known for it, not for what is computed from it
-- grain: source, gpu_uuid, ts_ms
select source, gpu_uuid, ts, to_ms(ts) as ts_ms, processes from raw.gpu_processes
