"""Rows of GPUs and MIG instances from the numbered slots of a node's GRES list."""

import polars as pl

from goodput_ingest.formats import gres
from goodput_ingest.formats.parsed import INSTANT

GPUS = {
    "cluster": pl.String(),
    "gpu_uuid": pl.String(),
    "node": pl.String(),
    "gpu_index": pl.Int32(),
    "slurm_index": pl.Int32(),
    "pci_bus_id": pl.String(),
    "gpu_model": pl.String(),
    "power_limit_w": pl.Float64(),
    "slowdown_temperature_c": pl.Float64(),
    "driver_version": pl.String(),
    "vbios_version": pl.String(),
    "valid_from_at": INSTANT,
    "valid_to_at": INSTANT,
}
GPU_INSTANCES = {
    "cluster": pl.String(),
    "gpu_uuid": pl.String(),
    "gpu_instance": pl.String(),
    "profile": pl.String(),
    "compute_slices": pl.Int32(),
    "slurm_index": pl.Int32(),
    "valid_from_at": INSTANT,
    "valid_to_at": INSTANT,
}


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
