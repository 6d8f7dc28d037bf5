"""Kernel logs: Xid lines before failures, and some that mean nothing."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from goodput_synthetic.fleet.fleet import GPUS_PER_NODE, PCI_BUSES, Fleet
from goodput_synthetic.fleet.habits import SECOND
from goodput_synthetic.fleet.lives import Life
from goodput_synthetic.fleet.schedule import Schedule

ENDING_S = 120
HARDWARE_SHARE = 0.12  # of the failed jobs of whole nodes
XIDS = {
    31: "MMU Fault: ENGINE GRAPHICS GPC0 GPCCLIENT_T1_0 faulted @ 0x7f2a_5e000000.",
    48: "DBE (Double Bit Error) ECC Error",
    63: "Row Remapper: New row (0x0000000000036fa2) marked for remapping, reset gpu to activate.",
    79: "GPU has fallen off the bus.",
    94: "Contained: SM (0x1). RST: No, D-RST: No",
}
ROW_REMAP, DOUBLE_BIT = 63, 48
PROCESS = {31: "pid=4211, name=python3, ", 48: "pid=4211, name=python3, ", 63: ""}
PROCESS |= {79: "pid=<unknown>, name=<unknown>, ", 94: "pid=4211, name=python3, "}


@dataclass
class Kernels:
    """Lines of all nodes; corrected: (GPU, ms, how many ECC errors from then on); what it means.

    remapped: (GPU, ms) of each row of memory that was marked to be remapped; uncorrected: like
    corrected.

    lines: (ms from the start, the line), in order of time.
    """

    lines: list[tuple[int, str]] = field(default_factory=list)
    corrected: list[tuple[int, int, int]] = field(default_factory=list)
    remapped: list[tuple[int, int]] = field(default_factory=list)
    uncorrected: list[tuple[int, int, int]] = field(default_factory=list)
    notes: list[dict[str, Any]] = field(default_factory=list)


def kernel_logs(
    fleet: Fleet, schedule: Schedule, lives: list[Life], start: datetime, total_ms: int, seed: int,
    noise: int,
) -> Kernels:  # fmt: skip
    """Return what the kernels logged, in order of time. noise: Xids that mean nothing."""
    rng = np.random.default_rng([seed, 11])
    start_ms = int(start.timestamp()) * SECOND
    reported = Kernels()
    found: list[tuple[int, int, int]] = []  # ms, GPU, code

    def note(kind: str, gpu: int, at: int, job_id: int) -> None:
        reported.notes.append(
            {
                "kind": kind,
                "node": fleet.nodes[gpu // GPUS_PER_NODE].name,
                "gpu_uuid": fleet.gpu_uuids[gpu],
                "at_ms": start_ms + at,
                "job_id": str(job_id),
            }
        )

    for run in schedule.runs:
        if run.failed_node is None or run.died_s is None:
            continue
        gpu = run.failed_node * GPUS_PER_NODE + int(rng.integers(GPUS_PER_NODE))
        at = run.died_s * SECOND
        before = max(0, at - int(rng.integers(600, 5_400)) * SECOND)
        found += [(before, gpu, 63), (at + 310, gpu, 79)]
        reported.corrected.append((gpu, before, int(rng.integers(20, 90))))
        note("xid 79, node failed", gpu, at + 310, run.request.job_id)
    for life in lives:
        if life.outcome != "failed" or not life.attempts or life.run.failed_node is not None:
            continue
        is_hardware = life.request.gpus >= GPUS_PER_NODE and rng.random() < HARDWARE_SHARE
        if life.request.kind == "early" or not ("xid" in life.request.options or is_hardware):
            continue
        gpu = int(fleet.unit_gpu[life.run.units[int(rng.integers(len(life.run.units)))]])
        at = max(life.end - int(rng.integers(15, 50)) * SECOND, life.begin)
        before = at - int(rng.integers(300, 3_600)) * SECOND
        # not while the job before it on the GPU ends: nobody could say whose it is
        before = min(at, max(life.begin + ENDING_S * SECOND, before))
        found += [(before, gpu, 94), (before + 220, gpu, 63), (at, gpu, 48)]
        reported.corrected.append((gpu, before, int(rng.integers(100, 900))))
        note("xid 48 after ecc", gpu, at, life.request.job_id)
    for _ in range(noise):
        found.append((int(rng.integers(total_ms)), int(rng.integers(len(fleet.gpu_uuids))), 31))
    reported.remapped += [(gpu, at) for at, gpu, code in found if code == ROW_REMAP]
    reported.uncorrected += [(gpu, at, 1) for at, gpu, code in found if code == DOUBLE_BIT]
    for at, gpu, code in sorted(found):
        when = start.astimezone(UTC) + timedelta(milliseconds=at)
        node, index = divmod(gpu, GPUS_PER_NODE)
        text = (
            f"{when:%Y-%m-%dT%H:%M:%S.%f}+00:00 {fleet.nodes[node].name} kernel: "
            f"NVRM: Xid (PCI:0000:{PCI_BUSES[index]}:00): {code}, {PROCESS[code]}{XIDS[code]}"
        )
        reported.lines.append((at, text))
    return reported
