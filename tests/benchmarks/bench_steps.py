"""The full ledger and the next five minutes at other lengths of steps than the yardstick's 60 s.

The ratio is that of CPU seconds: other work on the machine changes it less between two builds.
"""

import shutil
from dataclasses import replace

from tests.benchmarks import bench_fleet, bench_live
from tests.benchmarks.bench_fleet import MIXED, YARDSTICK_STEPS
from tests.benchmarks.table import Row, memory, number

RATIO_MOST = {"2": 1.3, "0.6": 1.6}  # of the full ledger with steps of 60 s
STEPS = (*RATIO_MOST, MIXED)


def measure(fleet, of_yardstick, steps, slices, yardstick_s, run):
    """Return the rows of each length of steps.

    of_yardstick: the full ledger with steps of 60 s. slices: of five minutes; 0: not measured.
    """
    for length in steps:
        other = replace(fleet, folder=fleet.folder / f"steps-{length}", steps=length)
        bench_fleet.read_quietly(other, run)
        yield _ratio(other, of_yardstick, run)
        if slices:
            yield from bench_live.measure(other, slices, yardstick_s, run)
        shutil.rmtree(other.folder)


def _ratio(fleet, of_yardstick, run):
    cost, counts = run(bench_fleet.build_all, fleet)
    wall, cpu = cost.wall_s / of_yardstick.wall_s, cost.cpu_s / of_yardstick.cpu_s
    most = RATIO_MOST.get(fleet.steps)
    return Row(
        f"full ledger, {fleet.name}: {counts['raw.job_events']:,} job events",
        f"CPU {number(cpu)} x that of steps of {YARDSTICK_STEPS} s (wall {number(wall)} x), "
        f"{memory(cost.peak_bytes)}",
        cost,
        "-" if most is None else f"<= {most} x that of steps of {YARDSTICK_STEPS} s",
        cpu <= most if most is not None and fleet.is_of_budget else None,
    )
