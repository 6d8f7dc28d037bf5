"""Slurm's GRES texts: `gpu:h100:8(S:0-1)`, `gpu:1g.10gb:4,gpu:3g.40gb:1`, `gpu:h100:3(IDX:0,2-3)`.

A node that lists MIG profiles does not say how its instances share GPUs: they are packed into slots
of seven compute slices, first fit in printed order, which is how many GPUs there must be at least.
"""

import re
from dataclasses import dataclass
from itertools import count

from goodput_ingest.formats import hostlist, raw_tables

GPUS = raw_tables.columns("gpus", "source", "memory_bytes", "sm_clock_max_hz")
GPU_INSTANCES = raw_tables.columns("gpu_instances", "source", "slices_of")

SLICES_PER_GPU = 7  # compute slices of an A100, H100 or newer: formats/goodput.md 5.4
GPUS_PER_NODE_MAX = 1_024
_ENTRY = re.compile(r"[^,()]+(?:\([^()]*\))?")
_PART = re.compile(r"(?:^|,)(?:gres[/:])?(shard|mps)(?::[^:,()]+)?[:=](\d{1,6})(?=[,(]|$)")
_PROFILE = re.compile(
    r"(?:(?P<model>.*)[_.-])?(?P<profile>(?P<slices>[1-7])g\.[0-9]{1,3}gb[+.\w]*)"
)


@dataclass(frozen=True)
class Gres:
    """Some GPUs of one type: their number and, where a job's are listed, their indices."""

    type: str | None
    gpus: int
    indices: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Instance:
    """A MIG instance: profile, its number within the profile, its index in the node's list."""

    profile: str
    number: int
    slurm_index: int
    slices: int

    @property
    def name(self) -> str:
        """Return the name that stands for a GPU instance id: `<profile>.<n>`."""
        return f"{self.profile}.{self.number}"


@dataclass(frozen=True)
class Slot:
    """A physical GPU of a node: the index of it (or of its first instance), model, instances."""

    slurm_index: int
    model: str | None
    instances: tuple[Instance, ...] = ()


def gpu_gres(text: str) -> list[Gres]:
    """Return the GPUs in a GRES text; other resources are ignored.

    Raises ValueError where a number is missing or unbelievable.
    """
    found: list[Gres] = []
    for entry in _ENTRY.findall(text):
        body, _, note = entry.partition("(")
        name, *rest = body.strip().split(":")
        if name != "gpu" or not rest:
            continue
        if not re.fullmatch(r"[0-9]{1,9}", rest[-1]):
            raise ValueError(f"GRES {entry[:80]!r} has no number of GPUs")
        gpus = int(rest[-1])
        if gpus > GPUS_PER_NODE_MAX:
            raise ValueError(f"GRES {entry[:80]!r} is more than {GPUS_PER_NODE_MAX} GPUs")
        kind = rest[0] if len(rest) > 1 and rest[0] != "no_consume" else None
        found.append(Gres(kind, gpus, _indices(note.rstrip(")"), gpus)))
    return found


def parts(text: str) -> dict[str, int]:
    """Return how many `shard`s and how many percent of `mps` a GRES text lists."""
    found: dict[str, int] = {}
    for kind, amount in _PART.findall(text):
        found[kind] = found.get(kind, 0) + int(amount)
    return found


def _indices(note: str, gpus: int) -> tuple[int, ...] | None:
    """Return the indices of `IDX:0,2-3`; None where they are missing, too large or too few."""
    if not note.startswith("IDX:"):
        return None
    try:
        found = hostlist.expand(f"[{note.removeprefix('IDX:')}]", GPUS_PER_NODE_MAX)
    except hostlist.HostlistError:
        return None
    indices = tuple(int(i) for i in found)
    return indices if len(found) == gpus and max(indices, default=0) < GPUS_PER_NODE_MAX else None


def mig_profile(gpu_type: str | None) -> tuple[str | None, str, int] | None:
    """Return model (if named), profile and compute slices of a MIG type; None for whole GPUs."""
    match = _PROFILE.fullmatch(gpu_type or "")
    return None if match is None else (match["model"], match["profile"], int(match["slices"]))


def slots(gres: list[Gres], first_index: int = 0) -> list[Slot]:
    """Return the physical GPUs behind a node's GRES, in order of the Slurm index."""
    whole: list[Slot] = []
    packed: list[tuple[str | None, list[Instance]]] = []
    numbers: dict[str, count[int]] = {}
    index = first_index
    for entry in gres:
        mig = mig_profile(entry.type)
        for _ in range(entry.gpus):
            if mig is None:
                whole.append(Slot(index, entry.type))
            else:
                model, profile, slices = mig
                number = next(numbers.setdefault(profile, count()))
                _pack(packed, model, Instance(profile, number, index, slices))
            index += 1
    split = [Slot(found[0].slurm_index, model, tuple(found)) for model, found in packed]
    return sorted(whole + split, key=lambda slot: slot.slurm_index)


def _pack(
    packed: list[tuple[str | None, list[Instance]]], model: str | None, instance: Instance
) -> None:
    for other, instances in packed:
        used = sum(i.slices for i in instances)
        if other == model and used + instance.slices <= SLICES_PER_GPU:
            instances.append(instance)
            return
    packed.append((model, [instance]))


def slot_rows(
    node: str, slot: Slot, gpu_uuid: str | None = None
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
