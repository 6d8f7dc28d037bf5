"""When each node's exporter was scraped, and when it was not."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from goodput_synthetic.fleet.fleet import Fleet, Ints
from goodput_synthetic.fleet.habits import SECOND
from goodput_synthetic.fleet.outages import Silence
from goodput_synthetic.fleet.schedule import Schedule

JITTER_MS = 40


@dataclass(frozen=True)
class Scrapes:
    """Times of readings, nodes by rounds, in milliseconds from the start.

    is_read: the exporter answered; is_profiled: its profiling fields were there (not in the first
    reading after the exporter's restart).
    """

    at: Ints
    is_read: npt.NDArray[np.bool_]
    is_profiled: npt.NDArray[np.bool_]
    interval_ms: int


def scrapes(
    fleet: Fleet, schedule: Schedule, silences: list[Silence], total_s: int, interval_s: int,
    seed: int,
) -> Scrapes:  # fmt: skip
    """Return the readings of all nodes: each at its own offset, a little late or early."""
    rng = np.random.default_rng([seed, 8])
    nodes, rounds = len(fleet.nodes), total_s // interval_s
    interval_ms = interval_s * SECOND
    offset = rng.integers(JITTER_MS, interval_ms - JITTER_MS, nodes)
    jitter = rng.integers(-JITTER_MS, JITTER_MS + 1, (nodes, rounds))
    at = offset[:, None] + np.arange(rounds)[None, :] * interval_ms + jitter
    is_read = np.ones((nodes, rounds), dtype=np.bool_)
    is_profiled = np.ones((nodes, rounds), dtype=np.bool_)
    for silence in silences:
        _silence(at, is_read, silence.node, silence.start_s, silence.end_s)
        after = np.flatnonzero(at[silence.node] >= silence.end_s * SECOND)
        if silence.kind == "exporter" and len(after):
            is_profiled[silence.node, after[0]] = False
    for outage in schedule.outages:
        if outage.state in ("down", "powered_off"):
            end = total_s if outage.end_s is None else outage.end_s
            _silence(at, is_read, outage.node, outage.start_s, end)
    for run in schedule.runs:
        if run.failed_node is not None and run.died_s is not None and run.end_s is not None:
            _silence(at, is_read, run.failed_node, run.died_s, run.end_s)
    return Scrapes(at, is_read, is_profiled, interval_ms)


def _silence(
    at: Ints, is_read: npt.NDArray[np.bool_], node: int, start_s: float, end_s: float
) -> None:
    is_read[node, (at[node] >= start_s * SECOND) & (at[node] < end_s * SECOND)] = False
