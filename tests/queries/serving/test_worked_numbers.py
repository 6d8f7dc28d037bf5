"""A worked number of the requirements about serving, W41; others: test_models."""

import pytest
from tests.queries.conftest import START_MS
from tests.queries.serving.load import HOUR, Serving

from goodput_queries.scope import Scope

HOURS = (0.0, float(HOUR), 2.0 * HOUR)
E2E_S = 10.0  # of each of 100 requests an hour
FIRST, SECOND = (
    Scope(START_MS + 1000 * HOUR * n, START_MS + 1000 * HOUR * (n + 1)) for n in (0, 1)
)


@pytest.fixture(scope="module")
def world(shared_evidence):
    """Give an engine that copies its cache, and one that is read once in two hours."""
    evidence = shared_evidence
    evidence.watched(2 * HOUR)
    evidence.node("h", 1)
    serving = Serving(evidence)
    copies = serving.engine("pod-offload-h100", "offload-h100", node="h", gpus=["h#0"])
    requests = [(hour * HOUR + 30.0 * n + 60, E2E_S) for hour in (0, 1) for n in range(100)]
    copies.histogram("e2e_s", requests, HOURS)
    spent = (0.0, 0.22 * 100 * E2E_S, (0.22 + 0.03) * 100 * E2E_S)
    copies.samples({s: {"kv_load_s": total} for s, total in zip(HOURS, spent, strict=True)})
    silent = serving.engine("pod-silent", "silent")
    silent.samples({s: {"generation_tokens": s} for s in (0.0, 60.0, 2.0 * HOUR)})
    serving.load()
    evidence.build()
    return evidence


def test_w41_copies_fall_from_22_to_3_percent_of_latency(world):
    """K12: at most 1.24 times as fast, were nothing else in the way."""
    sql = "select copy_ratio from marts.serving_engines where model = 'offload-h100'"
    before, after = (world.read(sql, scope).item() for scope in (FIRST, SECOND))

    assert (before, after) == (pytest.approx(0.22), pytest.approx(0.03))
    assert (1 - after) / (1 - before) == pytest.approx(1.24, abs=0.005)


def test_time_without_a_reading_for_over_an_hour_is_not_observed(world):
    sql = "select observed_ms, output_tokens from marts.serving_engines where model = 'silent'"

    assert world.read(sql).row(0) == (60_000, 60.0)
