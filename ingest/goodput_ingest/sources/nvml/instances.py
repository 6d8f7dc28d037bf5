"""MIG: the instances that a GPU is cut into."""

import re
from dataclasses import dataclass
from typing import Any

from goodput_ingest.sources.nvml.library import NeverAnswersError, NoAnswerError, Nvml, text

# "NVIDIA H200 MIG 1c.3g.71gb": compute instances of one GPU instance share its profile
PROFILE = re.compile(r"MIG (?:\d+c\.)?(\d+g\.\S+)")
MIB_PER_GB = 1024


@dataclass(frozen=True)
class Instance:
    """A GPU instance: its id, profile (as 3g.71gb), compute slices of seven, memory, a handle."""

    gi: int
    profile: str
    slices: int
    mem_total: int
    handle: Any

    def meta(self) -> dict[str, Any]:
        """Return what a meta line says of it."""
        return {
            "gi": self.gi,
            "profile": self.profile,
            "slices": self.slices,
            "mem_total": self.mem_total,
        }


def is_cut(nvml: Nvml, handle: Any) -> bool:
    """Say whether MIG is on; raises GpuGoneError or DriverGoneError."""
    try:
        return bool(nvml.ask("nvmlDeviceGetMigMode", handle)[0])
    except (NeverAnswersError, NoAnswerError):
        return False


def instances(nvml: Nvml, handle: Any) -> list[Instance]:
    """Return the instances of a GPU by id; none where MIG is off or nothing is cut yet."""
    if not is_cut(nvml, handle):
        return []
    found: dict[int, Instance] = {}
    for place in range(nvml.ask("nvmlDeviceGetMaxMigDeviceCount", handle)):
        try:
            device = nvml.ask("nvmlDeviceGetMigDeviceHandleByIndex", handle, place)
            gi = int(nvml.ask("nvmlDeviceGetGpuInstanceId", device))
            if gi not in found:
                found[gi] = _instance(nvml, gi, device)
        except (NoAnswerError, NeverAnswersError):  # an empty place, or its MIG layout just changed
            continue
    return [found[gi] for gi in sorted(found)]


def _instance(nvml: Nvml, gi: int, device: Any) -> Instance:
    attributes = nvml.ask("nvmlDeviceGetAttributes", device)
    slices, memory_mib = attributes.gpuInstanceSliceCount, attributes.memorySizeMB
    named = PROFILE.search(text(nvml.ask("nvmlDeviceGetName", device)))
    profile = named[1] if named else f"{slices}g.{round(memory_mib / MIB_PER_GB)}gb"
    return Instance(gi, profile, slices, memory_mib * 1024 * 1024, device)
