"""The step rhythm of jobs that report no steps, from starts of collectives or from readings."""

import random

import pytest
from tests.queries.conftest import shown_by, steps

from goodput_queries.scope import Scope

LENGTH_S = 600


def collectives(cluster, starts):
    """Load operations of two ranks; starts: seconds of (operation, bytes)."""
    rows = [{"pid": cluster.first_pid + rank, "rank": rank, "operation": operation,
             "sequence_number": number, "message_bytes": size, "started_at": second,
             "dumped_at": second + 0.1} for (operation, size), seconds in starts.items()
            for number, second in enumerate(seconds) for rank in (0, 1)]  # fmt: skip
    common = {"node": "a", "comm_id": cluster.name, "ranks": 2, "nodes": 1, "is_p2p": False}
    if rows:
        cluster.add("collectives", *rows, exec_time_s=0.001, **common)


def job(cluster, starts, events=()):
    cluster.job_on_a_node("1", 0, LENGTH_S, 2)
    collectives(cluster, starts)
    if events:
        cluster.events("1", list(events))


def train_steps(cluster):
    """Return how many steps its runs have, and their median length."""
    return cluster.read("select count(*), median(step_s) from marts.train_steps "
                        f"where starts_with(run_key, '{cluster.name}/')").row(0)  # fmt: skip


def training(length_s):
    """Return what a job of that step calls: six layers, one embedding, a mean every tenth step."""
    chance = random.Random(1)  # noqa: S311 -- noise, no secret
    at, begins = 20.0, []
    while at < LENGTH_S - length_s:
        begins.append(round(at, 3))
        at += length_s * chance.gauss(1, 0.01)
    layers = [b + part * length_s / 8 for b in begins for part in (1, 2, 3, 4, 5, 6)]
    return {
        ("AllReduce", 50_000_000): layers,
        ("AllReduce", 200_000_000): [b + 0.9 * length_s for b in begins],
        ("AllReduce", 8): begins[::10],
    }


def test_the_rhythm_is_that_of_what_a_step_calls_once(cluster):
    """It adds nothing to the ledger."""
    job(cluster, training(2.0))
    yield
    found = cluster.read("from marts.inferred_steps").row(0, named=True)
    assert found["period_ms"] == pytest.approx(2000, rel=0.01)
    assert 0 < found["error_ms"] < 30
    of = {"message_bytes": 200_000_000, "confidence": "Likely"}
    assert found.items() >= {**of, "method": "inferred from collectives"}.items()
    assert train_steps(cluster) == (0, None)
    assert "step_unsplit" not in cluster.gpu_s()


CHANCE = random.Random(2)  # noqa: S311 -- noise, no secret
NOISE = {("AllReduce", 1000): sorted(round(CHANCE.uniform(20, 590), 3) for _ in range(300))}
READ_S, EVERY_S = 1_200, 1.0
INFERRED = "select period_ms, confidence, left(reason, 38) from marts.inferred_steps"
test_what_is_not_inferred = shown_by({
    "operations without rhythm have none": (
        lambda c: job(c, NOISE), INFERRED,
        [(None, None, "no collective comes at a steady distan")]),
    "without collectives nothing is": (
        lambda c: job(c, {}), INFERRED, [(None, None, "no starts of its collectives are known")]),
    # the Inspector does not say which job a process belongs to
    "of a shared node nothing is inferred": (
        lambda c: [c.node("a", 2), c.job("2", 100, LENGTH_S, ["a"], 1),
                   c.job("1", 0, LENGTH_S, ["a"], 1), collectives(c, training(2.0))],
        "select period_ms from marts.inferred_steps", [(None,), (None,)]),
    # the inferred rhythm is 2 s; the job says 10 s
    "reported steps stay the only ones in the ledger": (
        lambda c: job(c, training(2.0), steps(1, 60, 0, 10.0)), train_steps,
        (60, pytest.approx(10))),
})  # fmt: skip


def activity(step_s):
    """Return activity as a mean over each reading: 80 % of a step computes, then it waits."""
    chance, found, at = random.Random(3), [], EVERY_S  # noqa: S311 -- noise, no secret
    while at < READ_S:
        parts = [((at - EVERY_S * k / 50) % step_s) / step_s for k in range(50)]
        busy = sum(0.9 if part < 0.8 else 0.1 for part in parts) / 50
        found.append((at, busy + chance.gauss(0, 0.03)))
        at += EVERY_S
    return found


def test_only_steps_of_several_readings_have_a_rhythm(cluster):
    """Of three runs: steps of seven seconds, of a third of a second, and no steps."""
    chance = random.Random(4)  # noqa: S311 -- noise, no secret
    noise = [(at, abs(chance.gauss(0.4, 0.15))) for at, _ in activity(7)]
    for run, readings in {"slow": activity(7.3), "fast": activity(0.31), "none": noise}.items():
        cluster.node(run, 1)
        cluster.job(run, 0, READ_S, [run], 1)
        active = dict(readings).get
        uses = {"sm_active_ratio": active, "engine_active_ratio": active}
        cluster.readings(cluster.gpu(f"{run}#0"), dict(readings), **uses)
    yield
    rhythm = "select period_ms, error_ms, confidence, reason from marts.reading_rhythm"
    (period_ms, error_ms, confidence, _), fast, none = (
        cluster.read(rhythm, Scope(run=f"{cluster.name}/{run}")).row(0)
        for run in ("slow", "fast", "none")
    )
    assert abs(period_ms - 7_300) <= error_ms == 500
    assert confidence == "Likely"
    too_short = "activity does not swing: steps may be shorter than readings"
    assert (fast[::3], none[::3]) == ((None, too_short), (None, "activity does not repeat itself"))
