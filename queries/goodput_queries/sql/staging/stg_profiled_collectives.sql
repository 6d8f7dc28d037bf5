-- NCCL kernels in PyTorch profiler traces, with the start in epoch ms.
-- grain: none (traces may overlap)
select * exclude (load_sequence), to_ms(start_at) as start_ms from raw.profiled_collectives
