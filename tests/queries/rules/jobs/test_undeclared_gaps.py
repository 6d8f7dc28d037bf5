"""What an undeclared gap between two steps was: decided by what the gang's readings say of it."""

import pytest
from tests.queries.conftest import built_together, durable, phase, steps


def readings(gpu, interval, active, first=None):
    """Return what reads a GPU from before the job on; `active` says when it works in the gap."""
    return gpu, interval, active, -interval if first is None else first


# what it shows: GPUs, length of the gap from second 100 on, readings, category of the gap
GAPS = {
    "one active reading of one GPU does not make a gap active": (
        4, 100, [readings(g, 10, lambda s, g=g: g == 0 and s == 150) for g in range(4)],
        {"idle_held"},
    ),
    "a gap in which over a tenth of the readings show activity is not idle": (
        4, 100, [readings(g, 10, lambda s, g=g: g == 0 and s > 140) for g in range(4)],
        {"busy_unclassified"},
    ),
    "readings at the ends of a gap cover the steps next to it": (
        1, 100, [readings(0, 10, lambda s: s <= 106 or s > 196, first=-5)], {"idle_held"},
    ),
    "a gap shorter than two sampling intervals is not called idle": (
        1, 15, [readings(0, 10, lambda _: False)], {"busy_unclassified"},
    ),
    "a gap without a reading is unknown": (1, 100, [], {"unknown"}),
    "GPUs read too seldom to describe a gap leave it to those read often": (
        2, 60, [readings(0, 10, lambda _: False), readings(1, 60, lambda _: False, first=-60)],
        {"idle_held"},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("gpus", "length", "read", "expected"), GAPS.values(), ids=GAPS)
@built_together
def test_what_a_gap_between_two_steps_was(cluster, gpus, length, read, expected):
    end = 100 + length
    cluster.job_on_a_node("1", 0, end + 100, gpus)
    cluster.events("1", [*steps(1, 10, 0), *steps(11, 20, end)])
    for gpu, interval, active, first in read:
        seconds = cluster.every(first, end + 100, interval)
        cluster.samples(
            f"a#{gpu}", seconds, lambda s, active=active: not 100 < s <= end or active(s)
        )
    yield
    found = cluster.own("category", "marts.ledger_pieces", "phase = 'undeclared_gap'")
    assert {category for (category,) in found} == expected


SPLIT = {"straggler_s": 1.0, "comm_s": 1.0}
WAITS_ALONE = {"straggler_s": 4.0, "comm_s": 7.0}
# what it shows: end and state of the job run, its events, GPU-seconds
SHORT = {
    "a few milliseconds between two steps belong to the step before": (
        1000, "COMPLETED", [e for k in range(1, 100) for e in steps(k, k, 10.005 * (k - 1))],
        {"step_unsplit": 990.49, "teardown": 9.51},
    ),
    "a few milliseconds between two measured steps are productive": (
        1000, "COMPLETED",
        [e for k in range(1, 100) for e in steps(k, k, 10.005 * (k - 1), **SPLIT)],
        {"straggler_wait": 99, "exposed_comm": 99, "productive": 792.49, "teardown": 9.51},
    ),
    "a few milliseconds after a step belong to it however short steps are": (
        100, "COMPLETED", [e for k in range(500) for e in steps(k, k, 0.108 * k, 0.1)],
        {"step_unsplit": 53.992, "teardown": 46.008},
    ),
    "a short gap after a phase belongs to the phase however short the phase is": (
        1000, "COMPLETED",
        [*steps(1, 50, 0), phase("ckpt_save", 500, 500.3), *steps(51, 90, 500.304),
         phase("eval", 900.304, 900.5), *steps(91, 99, 900.53)],
        {"step_unsplit": 990, "checkpoint_save": 0.304, "other_declared": 0.226,
         "teardown": 9.47},
    ),
    "a short gap after a step of waits alone is productive": (
        100, "COMPLETED", [*steps(1, 5, 0, **WAITS_ALONE), *steps(6, 9, 50.06, **WAITS_ALONE)],
        {"straggler_wait": 36, "exposed_comm": 54, "productive": 0.06, "teardown": 9.94},
    ),
    "a short gap after a measured step is productive whatever follows it": (
        100, "FAILED", [*steps(1, 5, 0, **SPLIT), *steps(6, 9, 50.06, **SPLIT), durable(5, 50)],
        {"straggler_wait": 5, "exposed_comm": 5, "productive": 40.06, "lost_work": 40,
         "fault_stall": 9.94},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("end", "state", "events", "expected"), SHORT.values(), ids=SHORT)
@built_together
def test_ledger_of_short_gaps(cluster, end, state, events, expected):
    cluster.job_on_a_node("1", 0, end, 1, state)
    cluster.events("1", events)
    yield
    assert cluster.gpu_s() == expected
