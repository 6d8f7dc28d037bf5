"""Gaps of a gang: one row for its GPUs, what they coincide with, which come back regularly."""

import numpy as np
import pytest
from tests.queries.conftest import built_together, durable, phase, steps
from tests.queries.findings import given

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
    busy = [(980, 0), (1010, 1), (1040, 30), (1070, 59), (1100, 88), (1130, 88)]
    rows = [{"ts": s, "cpu_total_s": float(s), "disk_busy_s": float(b)} for s, b in busy]
    evidence.add("node_samples", *rows, source="node-exporter", node="a")


# what it shows: what is loaded of a job, what is read of its gaps
CASES = {
    # from the last active reading to the first active one
    "GPUs that are idle together are one gap, which costs their time": (
        lambda c: [gang(c, ONE), c.add("rates", price_per_gpu_h=3.6, currency="USD")],
        "select rule, gap_s, gpus, held_gpus, gpu_ms, node, gpu_uuid, score, round(cost, 6), "
        f"coincides, coincides_ratio, confidence, evidence {GAPS}",
        [("gang_gap", 110.0, 4, 4, 440_000, "a", None, 1.0, 0.44, "Nothing known", None,
          "Not confirmed", TOGETHER)],
    ),
    "a GPU that is idle alone is no gap of the gang": (
        lambda c: gang(c, ONE, idle_gpus=1), GAPS, [],
    ),
    "three of four GPUs are most of them": (
        lambda c: gang(c, ONE, idle_gpus=3), f"select gpus, held_gpus, gpu_ms {GAPS}",
        [(3, 4, 330_000)],
    ),
    "idle GPUs that nobody holds are no gang": (
        lambda c: [c.node("a", 2), c.watched(600),
                   *(c.samples(f"a#{gpu}", c.every(-10, 600), lambda _: False) for gpu in (0, 1))],
        GAPS, [],
    ),
    "a busy disk explains a gap that the job does not": (
        lambda c: [gang(c, ONE), disk(c)], f"select coincides, confidence {GAPS}",
        [("Host disk busy", "Likely")],
    ),
    "the gaps of a gang have no more time than those of its GPUs": (
        lambda c: gang(c, every(500, 60), idle_gpus=3),
        "select 0 < (select sum(gpu_ms) from marts.gang_gaps), (select sum(gpu_ms) from "
        "marts.gang_gaps) <= (select sum(gpu_ms) from marts.idle_gaps)", [(True, True)],
    ),
    "pauses that take next to nothing are not regular": (  # 1.7 % of the time
        lambda c: gang(c, every(1200, 10)),
        f"select gap_s, (select count(*) from marts.periodic_gaps) {GAPS}", [(20.0, 0)] * 6,
    ),
    "repeats that readings missed do not hide the period": (
        lambda c: gang(c, [gap for n, gap in enumerate(every(300, 40)) if n % 5 != 2], gpus=1),
        f"select period_s, missed, right(gpu_uuid, 3) {PERIODIC}", [(300.0, 4, "a#0")],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("load", "sql", "expected"), CASES.values(), ids=CASES)
@built_together
def test_gaps(cluster, load, sql, expected):
    load(cluster)
    yield
    assert cluster.read(sql).rows() == expected


@pytest.mark.parametrize(
    ("declared", "coincides", "confidence"),
    [
        pytest.param((1000, 1090), "Checkpoint save", "Confirmed", id="most of it"),
        pytest.param((985, 1010), "Checkpoint save", "Likely", id="its beginning"),
        pytest.param((960, 990), "Checkpoint save", "Likely", id="just before"),
        pytest.param((700, 800), "Nothing declared", "Not confirmed", id="long before"),
    ],
)
@built_together
def test_a_gap_coincides_with_what_the_job_declares(cluster, declared, coincides, confidence):
    gang(cluster, [(1000, 1100)])
    before, after = declared
    ran = [
        *steps(1, before // 10, 0),
        phase("ckpt_save", before, after),
        *steps(before // 10 + 1, 500, max(after, 1110)),
        durable(500, 7000),
    ]
    cluster.events("1", ran)
    yield
    found = cluster.read(f"select coincides, confidence {GAPS}")
    assert found.rows() == [(coincides, confidence)]


@built_together
def test_sums_are_of_the_gpus_in_the_scope_and_the_gang_stays_whole(cluster):
    gang(cluster, ONE)
    yield
    scope = Scope(gpu_uuid=f"{cluster.name}/a#0")
    assert cluster.read(f"select gpus, gpu_ms {GAPS}", scope).rows() == [(4, 110_000)]


@built_together
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


@built_together
def test_regular_saves_in_which_gpus_spin_are_pauses(cluster):
    """They wait in a barrier, which telemetry shows as activity."""
    gang(cluster, [])
    events = [
        event
        for start in range(0, LENGTH_S, 600)
        for event in (
            *steps(start // 10, start // 10 + 53, start),
            phase("ckpt_save", start + 540, start + 600),
            durable(start // 10 + 53, start + 600),
        )
    ]
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


@built_together
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


@built_together
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


HOUR = 3_600
LOW = {
    "sm_active_ratio": 0.06, "tensor_active_ratio": 0.01, "dram_active_ratio": 0.04,
    "engine_active_ratio": 0.3, "power_w": 120.0, "memory_used_bytes": 9 * 10**9,
}  # fmt: skip
NO_PROFILING = dict.fromkeys(name for name in LOW if name.endswith("active_ratio"))


def found(cluster, columns):
    return cluster.read(f"select rule, {columns} from marts.low_use").rows()


# what it shows: readings of the GPUs of a job of an hour, columns and rows of what is found
USES = {
    "fewer GPUs have room for the load of many": (
        [{"readings": "a/0-3", **LOW}], "needed_gpus, mig_profile, gpu_ms",
        [("low_use", 1, None, 3 * HOUR * 1000)],
    ),
    "by utilisation without profiling counters": (
        [{"readings": "a/0-3", **LOW, **NO_PROFILING, "gpu_busy_ratio": 0.1}],
        "use_metric, confidence, tensor_active_ratio",
        [("low_use", "GPU utilisation", "Likely", None)],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("readings", "columns", "expected"), USES.values(), ids=USES)
@built_together
def test_what_low_use_is_found(cluster, readings, columns, expected):
    given.load(cluster, [{"node": "a", "gpus": 4}, {"job": "1", "end": HOUR}, *readings])
    yield
    assert found(cluster, columns) == expected


@built_together
def test_a_profile_of_one_slice_gives_the_other_slices_back(cluster):
    readings = {"readings": "a/0", **LOW}
    given.load(cluster, [{"node": "a", "gpus": 1}, {"job": "1", "end": HOUR}, readings])
    yield
    ((_, gpu_ms),) = found(cluster, "gpu_ms")
    assert gpu_ms == pytest.approx(HOUR * 1000 * 6 / 7, abs=2)


LOADED, EMPTY = 8 << 30, 1 << 29  # bytes in use


def readings(cluster, seconds, works, memory=LOADED):
    """Add a GPU that is read each second and works in these spans."""
    cluster.telemetry("n", 1)
    rows = [
        {
            "ts": second,
            "gpu_busy_ratio": 0.9 if any(a <= second < b for a, b in works) else 0.0,
            "memory_used_bytes": memory,
        }
        for second in seconds
    ]
    of_gpu = {"gpu_uuid": cluster.gpu("n-0"), "gpu_instance": "", "is_flagged": False}
    cluster.add("gpu_samples", *[{**of_gpu, **row} for row in rows], source="nvml")


# what it shows: when the GPU works in a hold of 1200 s, memory in use, seconds of executing idle
WORK = {
    "a pause of 20 s, from its first second": ([(1, 400), (420, 1201)], LOADED, 20),
    "without a program there is nothing that could run": ([(1, 400), (420, 1201)], EMPTY, 0),
    "before the first activity a program starts": ([(300, 1201)], LOADED, 0),
    "one that never works is starting for ten minutes": ([], LOADED, 600),
}


@pytest.mark.parametrize(("works", "memory", "idle_s"), WORK.values(), ids=WORK)
@built_together
def test_a_hold_without_job_events(cluster, works, memory, idle_s):
    cluster.job("7", 0, 1200, ["n"], 1)
    readings(cluster, range(1, 1201), works, memory)
    yield
    (run,) = cluster.read("select * from marts.executing_idle").rows(named=True)
    (team,) = cluster.read("select * from marts.executing_idle_by_team").rows(named=True)
    assert {name: run[name] for name in team} == team
    assert (run["idle_ms"] / 1000, run["held_ms"] / 1000) == (idle_s, pytest.approx(1200, abs=1))
    assert run["idle_ratio"] == pytest.approx(idle_s / 1200, abs=0.001)


@built_together
def test_declared_phases_are_left_out(cluster):
    """Of a pause of 60 s the job restores for 40."""
    cluster.job("7", 0, 1200, ["n"], 1)
    cluster.events("7", [*steps(1, 40, 0), phase("restore", 410, 450), *steps(41, 114, 460)])
    readings(cluster, range(1, 1201), [(1, 400), (460, 1201)])
    yield
    assert cluster.read("select idle_ms from marts.executing_idle").item() == 20_000
