"""Rows of GPUs and MIG instances from the numbered slots of a node's GRES list."""

from goodput_ingest.formats import gres, raw_tables

GPUS = raw_tables.columns("gpus", "source", "memory_bytes", "sm_clock_max_hz")
GPU_INSTANCES = raw_tables.columns("gpu_instances", "source", "slices_of")


def slot_rows(
    node: str, slot: gres.Slot, gpu_uuid: str | None = None
) -> tuple[dict[str, object], list[dict[str, object]]]:
    """Return the row of a GPU (without a UUID a numbered slot of its node) and of its instances."""
    uuid = gpu_uuid or f"{node}#{slot.slurm_index}"
    gpu: dict[str, object] = {
        "gpu_uuid": uuid,
        "node": node,
        "slurm_index": slot.slurm_index,
        "gpu_model": slot.model,
    }
    parts: list[dict[str, object]] = [
        {
            "gpu_uuid": uuid,
            "gpu_instance": instance.name,
            "profile": instance.profile,
            "compute_slices": instance.slices,
            "slurm_index": instance.slurm_index,
        }
        for instance in slot.instances
    ]
    return gpu, parts
