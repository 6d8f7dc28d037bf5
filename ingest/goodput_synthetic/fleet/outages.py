"""When nodes are unavailable, and when their telemetry is missing."""

from dataclasses import dataclass

import numpy as np

from goodput_synthetic.fleet.fleet import GPUS_PER_NODE, NODES_PER_RACK, Fleet

DAY_S = 86_400
OPENING_S = 600  # the fleet comes out of maintenance and the queue begins to drain


@dataclass
class Outage:
    """A node that takes no new jobs for a time (seconds from the start).

    state: down, drained, maintenance, powered_off, or reserved for somebody.
    end_s: None: still so when the evidence ends.
    when_empty: begins only when the last job has left; `start_s` is then when that was.
    """

    node: int
    state: str
    start_s: int
    end_s: int | None
    reason: str
    when_empty: bool = False
    has_begun: bool = True


@dataclass(frozen=True)
class Silence:
    """A time without readings of a node: of the whole monitoring, or of one restarted exporter."""

    node: int
    start_s: float
    end_s: float
    kind: str  # monitoring, exporter


def period_s(hours: int) -> int:
    """Return the length of a round of events: a day, or the whole of a shorter recording."""
    return min(hours * 3_600, DAY_S)


def planned(fleet: Fleet, hours: int, seed: int) -> list[Outage]:
    """Return outages that do not depend on what jobs do."""
    rng = np.random.default_rng([seed, 1])
    length, total = period_s(hours), hours * 3_600
    found = [Outage(n, "maintenance", 0, OPENING_S, "opening") for n in range(len(fleet.nodes))]
    usable = [n for n, node in enumerate(fleet.nodes) if node.pool != "mig"]
    several = max(1, len(usable) * GPUS_PER_NODE // 400)
    for begin in range(0, total, length):
        last = begin + length >= total
        chosen = [int(n) for n in rng.permutation(usable)]

        def at(share: float, begin: int = begin) -> int:
            return begin + int(share * length)

        for _ in range(several):
            found.append(Outage(chosen.pop(), "drained", at(0.30), at(0.42), "ECC errors, RMA"))
            found.append(
                Outage(chosen.pop(), "powered_off", at(0.55), at(0.80), "power save", True, False)
            )
        found.append(
            Outage(chosen.pop(), "drained", at(0.72), None if last else at(0.9), "fan failure")
        )
        upgraded, rest = max(1, len(usable) // 32), chosen[max(1, len(usable) // 32) :]
        found += [
            Outage(n, "maintenance", at(0.45), at(0.50), "firmware") for n in chosen[:upgraded]
        ]
        found += [
            Outage(n, "reserved", at(0.60), at(0.75), "robotics-demo")
            for n in rest[: max(1, len(usable) // 24)]
        ]
    return found


def silences(fleet: Fleet, hours: int, seed: int) -> list[Silence]:
    """Return when readings are missing for reasons of the monitoring alone."""
    rng = np.random.default_rng([seed, 2])
    length, total = period_s(hours), hours * 3_600
    found = []
    for begin in range(0, total, length):
        rack = int(rng.integers(0, fleet.nodes[-1].rack + 1))
        start = begin + 0.62 * length
        in_rack = range(rack * NODES_PER_RACK, min((rack + 1) * NODES_PER_RACK, len(fleet.nodes)))
        # of a fleet of one rack only a part goes silent, so that something is seen at all times
        silent = list(in_rack)[: max(2, min(len(in_rack), len(fleet.nodes) // 3))]
        found += [Silence(n, start, start + 0.02 * length + 300, "monitoring") for n in silent]
        for node in rng.choice(len(fleet.nodes), max(2, len(fleet.nodes) // 12), replace=False):
            at = begin + float(rng.uniform(0.05, 0.95)) * length
            found.append(Silence(int(node), at, at + 130, "exporter"))
    return found
