-- The GPUs of which a pass replaces hours, where it does not replace them of all.
-- grain: gpu_uuid
-- written_by: ledger_build/dirty_gpus.py, since it is what differs between two builds
create temp table reopened_gpus (gpu_uuid varchar not null);
