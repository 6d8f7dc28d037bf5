"""Gaps of a gang: one row for its GPUs, what they coincide with, which come back regularly."""

import numpy as np
import pytest
from tests.queries.conftest import durable, each, phase, shown_by, steps

from goodput_queries.scope import Scope

GPUS = 4
LENGTH_S = 7_200
SEEDS = 40


def works_outside(gaps):
    """Return what says whether a second lies in none of the gaps: readings cover back."""
    return lambda second: not any(start < second <= end for start, end in gaps)


def gang(evidence, gaps, *, gpus=GPUS, idle_gpus=None, end=LENGTH_S):
    """Load a job on one node whose GPUs are all idle in the gaps, or some of them."""
    evidence.job_on_a_node("1", 0, end, gpus)
    for gpu in range(gpus):
        of_it = gaps if idle_gpus is None or gpu < idle_gpus else []
        evidence.samples(f"a#{gpu}", evidence.every(-10, end), works_outside(of_it))


def every(period, length, end=LENGTH_S, first=300):
    return [(start, start + length) for start in range(first, end - length, period)]


TOGETHER = "4 of 4 GPUs of the job were idle together for 110 s; no job events cover it"
GAPS = "from marts.gang_gaps order by job_run_key, start_at"
PERIODIC = "from marts.periodic_gaps order by job_run_key"
ONE = [(1000, 1100)]


def disk(evidence):
    """Load a disk of the node that is busy in the gap."""
    busy = {980: 0.0, 1010: 1.0, 1040: 30.0, 1070: 59.0, 1100: 88.0, 1130: 88.0}
    evidence.host("a", busy, cpu_total_s=float, disk_busy_s=busy.get)


# what it shows: what is loaded of a job, what is read of its gaps
test_gaps = shown_by({
    # from the last active reading to the first active one
    "GPUs that are idle together are one gap, which costs their time": (
        lambda c: [gang(c, ONE), c.add("rates", price_per_gpu_h=3.6, currency="USD")],
        "select rule, gap_s, gpus, held_gpus, gpu_ms, node, gpu_uuid, score, round(cost, 6), "
        f"coincides, confidence, evidence {GAPS}",
        [("gang_gap", 110.0, 4, 4, 440_000, "a", None, 1.0, 0.44, "Nothing known",
          "Not confirmed", TOGETHER)]),
    "a GPU that is idle alone is no gap of the gang": (
        lambda c: gang(c, ONE, idle_gpus=1), GAPS, []),
    "three of four GPUs are most of them": (
        lambda c: gang(c, ONE, idle_gpus=3), f"select gpus, held_gpus, gpu_ms {GAPS}",
        [(3, 4, 330_000)]),
    "idle GPUs that nobody holds are no gang": (
        lambda c: [c.node("a", 2, watched=600),
                   *(c.samples(f"a#{gpu}", c.every(-10, 600), lambda _: False) for gpu in (0, 1))],
        GAPS, []),
    "a busy disk explains a gap that the job does not": (
        lambda c: [gang(c, ONE), disk(c)], f"select coincides, confidence {GAPS}",
        [("Host disk busy", "Likely")]),
    "the gaps of a gang have no more time than those of its GPUs": (
        lambda c: gang(c, every(500, 60), idle_gpus=3),
        "select 0 < (select sum(gpu_ms) from marts.gang_gaps), (select sum(gpu_ms) from "
        "marts.gang_gaps) <= (select sum(gpu_ms) from marts.idle_gaps)", [(True, True)]),
    "pauses that take next to nothing are not regular": (  # 1.7 % of the time
        lambda c: gang(c, every(1200, 10)),
        f"select gap_s, (select count(*) from marts.periodic_gaps) {GAPS}", [(20.0, 0)] * 6),
    "repeats that readings missed do not hide the period": (
        lambda c: gang(c, [gap for n, gap in enumerate(every(300, 40)) if n % 5 != 2], gpus=1),
        f"select period_s, missed, right(gpu_uuid, 3) {PERIODIC}", [(300.0, 4, "a#0")]),
    "sums are of the GPUs in the scope and the gang stays whole": (
        lambda c: gang(c, ONE),
        lambda c: c.read(f"select gpus, gpu_ms {GAPS}", Scope(gpu_uuid=c.gpu("a#0"))).rows(),
        [(4, 110_000)]),
})  # fmt: skip


# what the job declares as a save of the gap, with what that coincides
test_a_gap_coincides_with_what_the_job_declares = shown_by({
    "most of it": (1000, 1090, [("Checkpoint save", "Confirmed")]),
    "its beginning": (985, 1010, [("Checkpoint save", "Likely")]),
    "just before": (960, 990, [("Checkpoint save", "Likely")]),
    "long before": (700, 800, [("Nothing declared", "Not confirmed")]),
}, before=lambda c: gang(c, ONE), load=lambda c, begin, end: c.events("1", [
    *steps(1, begin // 10, 0), phase("ckpt_save", begin, end),
    *steps(begin // 10 + 1, 500, max(end, 1110)), durable(500, 7000)]),
    read=f"select coincides, confidence {GAPS}")  # fmt: skip


def test_regular_gaps_are_tied_to_the_saves_that_they_come_with(cluster):
    saves = every(600, 40, first=600)
    gang(cluster, saves)
    events, step = [], 1
    for (start, end), after in zip([(0, 0), *saves], [*saves, (LENGTH_S, 0)], strict=True):
        last = step + (after[0] - end) // 20
        if end:
            events.append(phase("ckpt_save", start, end))
            events.append(durable(step - 1, end))
        events += steps(step, last - 1, end, 20.0)
        step = last
    cluster.events("1", events)
    yield
    found = cluster.read(f"select coincides, period_s, confidence {PERIODIC}").rows()
    assert found == [("Checkpoint save", 600.0, "Confirmed")]


def test_regular_saves_in_which_gpus_spin_are_pauses(cluster):
    """They wait in a barrier, which telemetry shows as activity."""
    gang(cluster, [])
    events = [event for start in range(0, LENGTH_S, 600)
              for event in (*steps(start // 10, start // 10 + 53, start),
                            phase("ckpt_save", start + 540, start + 600),
                            durable(start // 10 + 53, start + 600))]  # fmt: skip
    cluster.events("1", events)
    yield
    columns = "coincides, period_s, gap_s, gaps, idle_gaps, confidence, evidence"
    (row,) = cluster.read(f"select {columns} {PERIODIC}").rows()
    assert row[:6] == ("Checkpoint save", 600.0, 60.0, 12, 0, "Confirmed")
    assert row[6].startswith("every 600 s (jitter 0 s) the job paused for 60 s, 12 times, with: ")
    assert cluster.read(GAPS).is_empty()


def random_gaps(seed):
    """Return gaps of random lengths at random times (Poisson), about one in five minutes."""
    rng = np.random.default_rng(seed)
    found, at = [], 60.0
    while (at := at + float(rng.exponential(300))) < LENGTH_S * 2 - 100:
        length = float(rng.uniform(20, 60))
        found.append((at, at + length))
        at += length
    return found


def test_gaps_at_random_times_are_not_called_regular(cluster):
    """One job for each seed: at most one in twenty may look regular."""
    cluster.node("a", SEEDS)
    for seed in range(SEEDS):
        cluster.job(str(seed), 0, LENGTH_S * 2, ["a"], 1)
        cluster.hold(str(seed), slurm_index=seed)
        seconds = cluster.every(-10, LENGTH_S * 2)
        cluster.samples(f"a#{seed}", seconds, works_outside(random_gaps(seed)))
    yield
    assert cluster.read(GAPS)["job_run_key"].n_unique() == SEEDS
    assert cluster.read(PERIODIC)["job_run_key"].n_unique() < 0.05 * SEEDS


def test_short_gaps_of_nodes_that_are_read_every_half_minute_are_found(cluster):
    """41 s every five minutes; four nodes of two GPUs, each read at its own moments."""
    gaps = works_outside(every(300, 41))
    names = ["a", "b", "d", "e"]
    for node in names:
        cluster.node(node, 2)
    cluster.job("1", 0, LENGTH_S, names, 8)
    for place, node in enumerate(names):
        for gpu in range(2):
            seconds = [s + 7.0 * place for s in cluster.every(-30, LENGTH_S - 30, 30)]
            cluster.samples(f"{node}#{gpu}", seconds, gaps)
    yield
    ((gap_s, *row),) = cluster.read(f"select gap_s, period_s, gaps, gpus, node {PERIODIC}").rows()
    assert row == [300.0, 23, 8, None]
    assert 41 <= gap_s <= 41 + 30


LOADED, EMPTY = 8 << 30, 1 << 29  # bytes in use


def readings(cluster, works, memory=LOADED, events=()):
    """Add a job of 1200 s on a GPU that is read each second and works in these spans."""
    cluster.telemetry("n", 1)
    cluster.job("7", 0, 1200, ["n"], 1)
    if events:
        cluster.events("7", events)
    busy = lambda s: 0.9 * any(a <= s < b for a, b in works)  # noqa: E731
    use = {"gpu_busy_ratio": busy, "memory_used_bytes": memory}
    cluster.readings(cluster.gpu("n-0"), range(1, 1201), "nvml", **use)


RESTORED = [*steps(1, 40, 0), phase("restore", 410, 450), *steps(41, 114, 460)]


# what it shows: when the GPU works in a hold of 1200 s, memory in use, job events; seconds of
# executing idle
@each({
    "a pause of 20 s, from its first second": ([(1, 400), (420, 1201)], LOADED, [], 20),
    "without a program there is nothing that could run": ([(1, 400), (420, 1201)], EMPTY, [], 0),
    "before the first activity a program starts": ([(300, 1201)], LOADED, [], 0),
    "one that never works is starting for ten minutes": ([], LOADED, [], 600),
    "declared phases are left out": ([(1, 400), (460, 1201)], LOADED, RESTORED, 20),
})  # fmt: skip
def test_executing_idle_of_a_hold(cluster, works, memory, events, idle_s):
    readings(cluster, works, memory, events)
    yield
    (run,), (team,) = (cluster.read(f"select * from marts.executing_idle{by}").rows(named=True)
                       for by in ("", "_by_team"))  # fmt: skip
    assert run.items() >= team.items()
    assert (run["idle_ms"] / 1000, run["held_ms"] / 1000) == (idle_s, pytest.approx(1200, abs=1))
    assert run["idle_ratio"] == pytest.approx(idle_s / 1200, abs=0.001)
