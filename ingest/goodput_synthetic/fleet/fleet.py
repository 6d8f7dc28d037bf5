"""The hardware of a fleet: racks, nodes of eight GPUs, their addresses, and one node cut by MIG."""

import hashlib
import uuid
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

GPUS_PER_NODE = 8
NODES_PER_RACK = 4
RACKS_PER_ROW = 8
CPUS_PER_NODE = 192
CPUS_PER_GPU = CPUS_PER_NODE // GPUS_PER_NODE
MEMORY_MIB = 2_063_000
GPUS_MIN = 64
H200_SHARE = 0.4
SLICES = 7
# whole GPUs first, then seven small instances a GPU, then two large ones with a seventh left over:
# in this order Slurm's indices of a GPU's instances follow each other
MIG_GRES = "gpu:h100:2,gpu:1g.10gb:14,gpu:3g.40gb:8"
MIG_LAYOUT = ("", "", "1g.10gb:7", "1g.10gb:7", *["3g.40gb:2"] * 4)
PCI_BUSES = ("1b", "43", "52", "61", "9d", "c3", "d1", "df")
MODELS = {"h100": "NVIDIA H100 80GB HBM3", "h200": "NVIDIA H200"}
MEMORY_BYTES = {"h100": 85_520_809_984, "h200": 150_754_820_096}
POWER_LIMIT_W = 700.0
SLOWDOWN_TEMPERATURE_C = 89
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Node:
    """A node: its name, its rack, the pool whose jobs it runs and the model of its GPUs."""

    name: str
    rack: int
    pool: str
    model: str

    @property
    def place(self) -> str:
        """Return rack, row of racks and power feeds, as the inventory has them."""
        row = self.rack // RACKS_PER_ROW
        return f"rack{self.rack + 1:02},row{row + 1},{'+'.join(self.feeds)}"

    @property
    def feeds(self) -> tuple[str, str]:
        """Return the pair of power feeds of its rack and the next."""
        row, place = divmod(self.rack, RACKS_PER_ROW)
        return f"{row + 1}A{place // 2 + 1}", f"{row + 1}B{place // 2 + 1}"


@dataclass(frozen=True)
class Fleet:
    """Nodes and their units: what the scheduler allocates, a GPU or a MIG instance.

    GPU `g` stands in node `g // 8`. Units are numbered node by node in order of the Slurm index;
    `rest` are the parts of GPUs that no instance covers (gpu, lower share).
    """

    nodes: list[Node]
    gpu_uuids: list[str]
    first_unit: list[int]
    unit_gpu: Ints
    unit_node: Ints
    unit_instance: list[str]
    unit_slices: Ints
    rests: list[tuple[int, int]] = field(default_factory=list)

    def units_of(self, node: int) -> range:
        """Return the units of a node."""
        return range(self.first_unit[node], self.first_unit[node + 1])

    def pool_nodes(self, pool: str) -> Ints:
        """Return the nodes of a pool."""
        return np.array([i for i, n in enumerate(self.nodes) if n.pool == pool], dtype=np.int64)

    def slurm_index(self, unit: int) -> int:
        """Return the index that Slurm gives the unit on its node."""
        return unit - self.first_unit[int(self.unit_node[unit])]

    def unit_type(self, unit: int) -> str:
        """Return the GRES type of a unit: h100, h200 or a MIG profile."""
        instance = self.unit_instance[unit]
        if instance:
            return instance.rsplit(".", 1)[0]
        return self.nodes[int(self.unit_node[unit])].model

    def gres(self, node: int) -> str:
        """Return the node's GRES as Slurm prints it."""
        found = self.nodes[node]
        return MIG_GRES if found.pool == "mig" else f"gpu:{found.model}:{GPUS_PER_NODE}"

    def partitions(self, node: int) -> list[str]:
        """Return the partitions of a node; the preemptible one spans both kinds of nodes."""
        pool = self.nodes[node].pool
        return [pool] if pool == "mig" else [pool, "scavenge"]


def build(gpus: int, seed: int) -> Fleet:
    """Return a fleet of `gpus` GPUs; raises ValueError where they make no whole nodes."""
    if gpus % GPUS_PER_NODE or gpus < GPUS_MIN:
        raise ValueError(f"a fleet has whole nodes of 8 GPUs and at least {GPUS_MIN}, not {gpus}")
    count = gpus // GPUS_PER_NODE
    first_h200 = count - 1 - round((count - 1) * H200_SHARE)
    nodes = []
    for i in range(count):
        rack, place = divmod(i, NODES_PER_RACK)
        model = "h200" if first_h200 <= i < count - 1 else "h100"
        pool = "mig" if i == count - 1 else model
        nodes.append(Node(f"hgx-{rack + 1:02}-{place + 1:02}", rack, pool, model))
    fleet_gpus: list[int] = []
    instances: list[str] = []
    slices: list[int] = []
    rests: list[tuple[int, int]] = []
    first_unit = []
    for i, node in enumerate(nodes):
        first_unit.append(len(fleet_gpus))
        for g in range(GPUS_PER_NODE):
            layout = MIG_LAYOUT[g] if node.pool == "mig" else ""
            profile, _, number = layout.partition(":")
            size = int(profile[0]) if profile else SLICES
            for n in range(int(number or 1)):
                fleet_gpus.append(i * GPUS_PER_NODE + g)
                instances.append(f"{profile}.{n}" if profile else "")
                slices.append(size)
            covered = size * int(number or 1)
            if covered < SLICES:
                rests.append((i * GPUS_PER_NODE + g, covered))
    first_unit.append(len(fleet_gpus))
    return Fleet(
        nodes=nodes,
        gpu_uuids=[_uuid(seed, i) for i in range(gpus)],
        first_unit=first_unit,
        unit_gpu=np.array(fleet_gpus, dtype=np.int64),
        unit_node=np.array(fleet_gpus, dtype=np.int64) // GPUS_PER_NODE,
        unit_instance=instances,
        unit_slices=np.array(slices, dtype=np.int64),
        rests=rests,
    )


def _uuid(seed: int, gpu: int) -> str:
    digest = hashlib.blake2b(f"{seed}/{gpu}".encode(), digest_size=16).digest()
    return f"GPU-{uuid.UUID(bytes=digest)}"


def pci_bus_id(gpu: int) -> str:
    """Return the PCI address of a GPU in its node."""
    return f"00000000:{PCI_BUSES[gpu % GPUS_PER_NODE]}:00.0"


def hostlist(names: list[str]) -> str:
    """Return node names as Slurm writes them: `hgx-01-[01-04,06],hgx-02-01`."""
    by_rack: dict[str, list[int]] = {}
    for name in sorted(names):
        prefix, _, place = name.rpartition("-")
        by_rack.setdefault(prefix, []).append(int(place))
    return ",".join(
        f"{prefix}-[{ranges(places, 2)}]" if len(places) > 1 else f"{prefix}-{places[0]:02}"
        for prefix, places in by_rack.items()
    )


def ranges(numbers: list[int], width: int = 0) -> str:
    """Return rising numbers as Slurm lists them: `0,2-3`, or with width 2 `00,02-03`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(f"{a:0{width}}" if a == b else f"{a:0{width}}-{b:0{width}}" for a, b in runs)
