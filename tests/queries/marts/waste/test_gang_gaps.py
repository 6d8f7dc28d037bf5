"""Gaps of a gang: one row for its GPUs, what they coincide with, which come back regularly."""

import numpy as np
import pytest
from tests.queries.conftest import built_together, durable, phase, steps

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


def gang_gaps(evidence, columns="*", **scope):
    sql = f"select {columns} from marts.gang_gaps order by job_run_key, start_at"
    return evidence.read(sql, scope=Scope(**scope))


def periodic(evidence, columns="*"):
    return evidence.read(f"select {columns} from marts.periodic_gaps order by job_run_key")


def every(period, length, end=LENGTH_S, first=300):
    return [(start, start + length) for start in range(first, end - length, period)]


TOGETHER = "4 of 4 GPUs of the job were idle together for 110 s; no job events cover it"
# what it shows: how many of four GPUs are idle for 100 s, columns and rows of the gang's gaps
GAPS = {
    # from the last active reading to the first active one
    "GPUs that are idle together are one gap": (
        4, "rule, gap_s, gpus, held_gpus, gpu_ms, node, gpu_uuid, score",
        [("gang_gap", 110.0, 4, 4, 440_000, "a", None, 1.0)],
    ),
    "a GPU that is idle alone is no gap of the gang": (1, "rule", []),
    "three of four GPUs are most of them": (3, "gpus, held_gpus, gpu_ms", [(3, 4, 330_000)]),
    "without job events nothing is known of it": (
        4, "coincides, coincides_ratio, confidence, evidence",
        [("Nothing known", None, "Not confirmed", TOGETHER)],
    ),
    "it costs its GPU time at its price": (4, "round(cost, 6)", [(0.44,)]),
}  # fmt: skip


@pytest.mark.parametrize(("idle_gpus", "columns", "expected"), GAPS.values(), ids=GAPS)
@built_together
def test_gap_of_a_gang(cluster, idle_gpus, columns, expected):
    gang(cluster, [(1000, 1100)], idle_gpus=idle_gpus)
    cluster.add("rates", price_per_gpu_h=3.6, currency="USD")
    yield
    assert gang_gaps(cluster, columns).rows() == expected


@built_together
def test_idle_gpus_that_nobody_holds_are_no_gang(cluster):
    cluster.node("a", 2)
    cluster.watched(600)
    for gpu in range(2):
        cluster.samples(f"a#{gpu}", cluster.every(-10, 600), lambda _: False)
    yield
    assert gang_gaps(cluster).is_empty()


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
    found = gang_gaps(cluster, "coincides, confidence")

    assert found.rows() == [(coincides, confidence)]


@built_together
def test_a_busy_disk_explains_a_gap_that_the_job_does_not(cluster):
    gang(cluster, [(1000, 1100)])
    rows = [
        {"ts": s, "cpu_total_s": float(s), "disk_busy_s": float(busy)}
        for s, busy in [(980, 0), (1010, 1), (1040, 30), (1070, 59), (1100, 88), (1130, 88)]
    ]
    cluster.add("node_samples", *rows, source="node-exporter", node="a")
    yield
    found = gang_gaps(cluster, "coincides, confidence")

    assert found.rows() == [("Host disk busy", "Likely")]


@built_together
def test_sums_are_of_the_gpus_in_the_scope_and_the_gang_stays_whole(cluster):
    gang(cluster, [(1000, 1100)])
    yield
    found = gang_gaps(cluster, "gpus, gpu_ms", gpu_uuid=f"{cluster.name}/a#0")

    assert found.rows() == [(4, 110_000)]


@built_together
def test_the_gaps_of_a_gang_have_no_more_time_than_those_of_its_gpus(cluster):
    gang(cluster, every(500, 60), idle_gpus=3)
    yield
    in_gang, in_all = cluster.read(
        "select (select sum(gpu_ms) from marts.gang_gaps)::bigint, "
        "(select sum(gpu_ms) from marts.idle_gaps)::bigint"
    ).row(0)
    assert 0 < in_gang <= in_all


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
    (row,) = periodic(cluster, "coincides, period_s, confidence").rows()

    assert row == ("Checkpoint save", 600.0, "Confirmed")


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
    (row,) = periodic(
        cluster, "coincides, period_s, gap_s, gaps, idle_gaps, confidence, evidence"
    ).rows()

    assert row[:6] == ("Checkpoint save", 600.0, 60.0, 12, 0, "Confirmed")
    assert row[6].startswith("every 600 s (jitter 0 s) the job paused for 60 s, 12 times, with: ")
    assert gang_gaps(cluster).is_empty()


@built_together
def test_pauses_that_take_next_to_nothing_are_left_out(cluster):
    gang(cluster, every(1200, 10))  # 1.7 % of the time
    yield
    assert periodic(cluster).is_empty()
    assert gang_gaps(cluster, "gap_s")["gap_s"].to_list() == [20.0] * 6


@built_together
def test_repeats_that_readings_missed_do_not_hide_the_period(cluster):
    kept = [gap for n, gap in enumerate(every(300, 40)) if n % 5 != 2]
    gang(cluster, kept, gpus=1)
    yield
    (row,) = periodic(cluster, "period_s, missed, gpu_uuid").rows()

    assert row == (300.0, 4, f"{cluster.name}/a#0")


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
    found = periodic(cluster)

    jobs = gang_gaps(cluster, "distinct on (job_run_key) job_run_key")
    assert jobs.height == SEEDS
    assert found["job_run_key"].n_unique() < 0.05 * SEEDS


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
    (row,) = periodic(cluster, "period_s, gaps, gap_s, gpus, node").rows()

    period_s, number, gap_s, gpus, node = row
    assert (period_s, number, gpus, node) == (300.0, 23, 8, None)
    assert 41 <= gap_s <= 41 + 30
