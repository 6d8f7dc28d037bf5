"""Changes of step time: found where there is one, quiet where there is none."""

import random

import pytest
from tests.queries.conftest import built_together

STEPS, BASE_S = 1500, 0.5
AUTOCORRELATIONS = (0.5, 0.8, 0.95)


def noise(seed, steps=STEPS):
    """Return 1 % noise whose values depend on the ones before, and a few steps that take longer."""
    chance = random.Random(seed)  # noqa: S311 -- noise, no secret
    memory = AUTOCORRELATIONS[seed % 3]
    value, found = chance.gauss(0, 1), []
    for _ in range(steps):
        value = memory * value + (1 - memory**2) ** 0.5 * chance.gauss(0, 1)
        found.append((1 + 0.01 * value) * (3 if chance.random() < 0.01 else 1))
    return found


def run(evidence, name, factors, *, gap=None, data_s=None, more=None, until=None, attempt=0):
    """Load a run on a node of its own; factors: of BASE_S; return when its last step ended.

    gap: seconds that pass before a step outside of all steps; data_s: of it inside the step
    """
    at, events = until or 0.0, []
    for number, factor in enumerate(factors, 1):
        length = BASE_S * factor + (data_s or {}).get(number, 0)
        at += length + (gap or {}).get(number, 0)
        event = {"event": "step", "step": number, "t": round(at, 3), "dur_s": round(length, 6)}
        if data_s is not None:
            event["data_s"] = data_s.get(number, 0.0)
        events.append(event | (more(number) if more else {}))
    evidence.events(name, events, attempt=attempt, host=name)
    return at


def place(evidence, name, end, gpus=2):
    evidence.node(name, gpus)
    evidence.job(name, 0, end, [name], gpus)


def changes(cluster):
    rows = cluster.read("select * from marts.step_changes order by run_key, since_ms")
    return rows.rows(named=True)


@built_together
def test_of_24_series_changes_of_5_to_10_percent_are_found_and_nothing_else(cluster):
    chance = random.Random(7)  # noqa: S311 -- noise, no secret
    expected = {}
    for seed in range(24):
        factors, name = noise(seed), f"n{seed:02}"
        if seed % 2:
            begin = int(STEPS * chance.uniform(0.3, 0.6))
            end = STEPS if seed % 4 == 1 else begin + int(STEPS * chance.uniform(0.15, 0.3))
            size = chance.uniform(1.05, 1.1)
            factors = [f * size if begin <= k < end else f for k, f in enumerate(factors)]
            expected[f"{cluster.name}/{name}"] = (begin + 1, end, size)
        place(cluster, name, run(cluster, name, factors) + 1)
    yield
    found = changes(cluster)
    right = [
        row
        for row in found
        if row["run_key"] in expected
        and row["first_step"] == pytest.approx(expected[row["run_key"]][0], abs=0.03 * STEPS)
        and row["ratio"] == pytest.approx(expected[row["run_key"]][2], abs=0.02)
        and (row["until_at"] is None) == (expected[row["run_key"]][1] == STEPS)
    ]
    assert len(right) / len(found) >= 0.95, "precision"
    assert len({row["run_key"] for row in right}) / len(expected) >= 0.9, "recall"


SAVES = dict.fromkeys(range(100, STEPS, 100), 20.0)
STALLS = dict.fromkeys(range(700, 900), 0.4)


def larger_batch(step):
    return {"samples": 16.0 if step <= 700 else 32.0}


# what it shows: the lives of a run (factors, more), columns of its only episode, if it has one
RUNS = {
    "steps that become slower twice are one episode": (
        [([1.0 if k < 500 else 1.2 if k < 1000 else 1.5 for k in range(STEPS)], {})],
        {"before_ms": pytest.approx(500), "until_at": None,
         "lost_gpu_ms": pytest.approx(2 * 500 * (100 + 250), rel=0.05)},
    ),
    # the second life begins again at step 1, on the same node
    "checkpoints, data stalls and restarts are no change": (
        [(noise(3), {"gap": SAVES, "data_s": STALLS}), (noise(4), {})], None,
    ),
    # twice the samples in 1.4 times the time is faster: throughput is compared
    "a larger batch is no slower step": (
        [([1.0 if k <= 700 else 1.4 for k in range(1, STEPS + 1)], {"more": larger_batch})],
        {"ratio": pytest.approx(0.7, abs=0.01), "lost_gpu_ms": 0},
    ),
    "an attempt of few steps has no changes": ([([1.0] * 60 + [2.0] * 60, {})], None),
}  # fmt: skip


@pytest.mark.parametrize(("lives", "expected"), RUNS.values(), ids=RUNS)
@built_together
def test_changes_of_a_run(cluster, lives, expected):
    end = -60
    for attempt, (factors, more) in enumerate(lives):
        end = run(cluster, "a", factors, until=end + 60, attempt=attempt, **more)
    place(cluster, "a", end + 1)
    yield
    found = [{name: row[name] for name in expected or row} for row in changes(cluster)]
    assert found == ([expected] if expected else [])
