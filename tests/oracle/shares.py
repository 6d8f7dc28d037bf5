"""GPUs that a middleware shares: pods on labels of their series, in a cluster without a scheduler.

Rules: docs: Holds and ownership, "Shares of one GPU add up to one GPU", "Readings of a GPU in
shares"; 1.4, Unit (how shares are rounded); label_absent_ms of thresholds.csv.
"""

import random
from dataclasses import dataclass, field
from itertools import pairwise

from tests.oracle.readings import HOUR_MS, telemetry

ABSENT_MS = 600_000


@dataclass
class SharedGpu:
    """A GPU of node `w`: its readings, and the pods (name, containers) on the labels of each."""

    index: int
    readings: list[tuple[int, bool]] = field(default_factory=list)
    pods: dict[int, list[tuple[str, int]]] = field(default_factory=dict)

    @property
    def uuid(self):
        """Return the name that telemetry has for it."""
        return f"GPU-w-{self.index}"


def add_shared_gpus(world):
    """Add GPUs that pods share, each with readings up to the world's end."""
    dice = random.Random(f"{world.seed} shares")  # noqa: S311 -- chance, and no secret
    for index in range(dice.choice([0, 0, 1, 2])):
        gpu = SharedGpu(index)
        interval = dice.choice([10, 15, 30, 60]) * 1000
        moments = range(world.end % interval, world.end + 1, interval)
        quiet = [
            (begin, begin + dice.choice([30, 200, 400, 1200]) * 1000)
            for begin in (dice.randrange(0, world.end) for _ in range(dice.choice([0, 1, 2, 4])))
        ]
        gpu.readings = [(at, not any(a < at <= b for a, b in quiet)) for at in moments]
        stays = []
        for pod in range(dice.randint(1, 4)):
            begin = dice.randrange(-600_000, world.end)
            for _ in range(dice.choice([1, 1, 2])):  # it may be away for a while
                end = begin + dice.choice([120, 600, 1800, 3600]) * 1000
                stays.append((f"pod-{pod}", dice.choice([1, 1, 2]), begin, end))
                begin = end + dice.choice([60, 300, 700, 1500]) * 1000
        for at in moments:
            here = {pod: count for pod, count, begin, end in stays if begin <= at < end}
            gpu.pods[at] = sorted(here.items())
        world.shared_gpus.append(gpu)
    if not any(pods for gpu in world.shared_gpus for pods in gpu.pods.values()):
        world.shared_gpus.clear()  # of a node without labels, ownership is inferred


def exposition(world, metric):
    """Return the readings as an exporter writes them: a series for each share and container."""
    lines = []
    for gpu in world.shared_gpus:
        for at, active in gpu.readings:
            labels = [f'gpu="{gpu.index}",UUID="{gpu.uuid}",Hostname="w",modelName="T4"']
            shares = [
                f'{labels[0]},namespace="ns",pod="{pod}",container="c{n}",vgpu="{share}"'
                for share, (pod, count) in enumerate(gpu.pods[at])
                for n in range(count)
            ]
            value = f"{0.9 if active else 0.0} {world.start_ms + at}"
            lines += [(at, f"{metric}{{{series}}} {value}\n") for series in shares or labels]
    return "".join(line for _, line in sorted(lines))


def add_cells(cells, world):
    """Add the milliseconds of shared GPUs: equal parts for the pods that have a GPU at a time."""
    starts = _starts(world)
    for gpu in world.shared_gpus:
        stays = [stay for stay in _stays(gpu) if stay[1] < stay[2]]
        use = {stay: telemetry(gpu.readings, stay[1], stay[2]) for stay in stays}
        edges = {0, world.end, *range(0, world.end, HOUR_MS)}
        for _, begin, end in stays:
            edges |= {begin, end}
        for intervals in use.values():
            edges |= {moment for a, b, _ in intervals for moment in (a, b)}
        moments = sorted(moment for moment in edges if 0 <= moment <= world.end)
        for a, b in pairwise(moments):
            owners = sorted((starts[stay], stay) for stay in stays if stay[1] <= a and b <= stay[2])
            hour = world.start_ms + a // HOUR_MS * HOUR_MS
            if not owners:
                cells[(gpu.uuid, hour, "free_unknown", "", "")] += b - a
            for place, (name, stay) in enumerate(owners):
                category = next((c for x, y, c in use[stay] if x <= a and b <= y), "unknown")
                span = (world.start_ms + a, world.start_ms + b)
                ms = _part(place + 1, len(owners), *span) - _part(place, len(owners), *span)
                cells[(gpu.uuid, hour, category, name, "")] += ms


def _part(places, of, begin, end):
    """1.4: the milliseconds of the first places, of which a GPU has so many."""
    return places * end // of - places * begin // of


def _stays(gpu):
    """Return who has the GPU, from the first reading of a pod to the last.

    A pod whose labels are away for ten minutes has not gone. What is read last is the world's end.
    """
    found = []
    for pod in sorted({pod for pods in gpu.pods.values() for pod, _ in pods}):
        seen = [at for at, pods in gpu.pods.items() if pod in dict(pods)]
        begin = before = seen[0]
        for at in seen[1:]:
            if at - before > ABSENT_MS:
                found.append((pod, begin, before))
                begin = at
            before = at
        found.append((pod, begin, before))
    return found


def _starts(world):
    """Return the name of each stay: a pod, since it was away from all GPUs for long."""
    names = {}
    last = {}
    for stay in sorted(stay for gpu in world.shared_gpus for stay in _stays(gpu)):
        pod, begin, end = stay
        first, until = last.get(pod, (begin, begin))
        first = begin if begin - until > ABSENT_MS else first
        names[stay] = f"{world.shared_cluster}/ns/{pod}@{world.epoch_s(first)}"
        last[pod] = (first, max(until, end))
    return names
