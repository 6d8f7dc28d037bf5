"""A worked number of the requirements about serving, W41, and what a window leaves out.

Other worked numbers: test_models; what each rule of findings finds are its cases.
"""

import pytest
from tests.queries.conftest import START_MS, built_together
from tests.queries.findings import given
from tests.queries.serving.load import HOUR, Serving

from goodput_queries.scope import Scope

HOURS = (0.0, float(HOUR), 2.0 * HOUR)
E2E_S = 10.0  # of each of 100 requests an hour


@built_together
def test_w41_copies_fall_from_22_to_3_percent_of_latency(cluster):
    """K12: at most 1.24 times as fast, were nothing else in the way."""
    cluster.node("h", 1)
    serving = Serving(cluster)
    engine = serving.engine("pod-offload-h100", "offload-h100", node="h", gpus=["h#0"])
    requests = [(hour * HOUR + 30.0 * n + 60, E2E_S) for hour in (0, 1) for n in range(100)]
    engine.histogram("e2e_s", requests, HOURS)
    spent = (0.0, 0.22 * 100 * E2E_S, (0.22 + 0.03) * 100 * E2E_S)
    engine.samples({s: {"kv_load_s": total} for s, total in zip(HOURS, spent, strict=True)})
    serving.load()
    yield
    hours = (Scope(START_MS + 1000 * HOUR * n, START_MS + 1000 * HOUR * (n + 1)) for n in (0, 1))
    sql = "select copy_ratio from marts.serving_engines"
    before, after = (cluster.read(sql, hour).item() for hour in hours)
    assert (before, after) == (pytest.approx(0.22), pytest.approx(0.03))
    assert (1 - after) / (1 - before) == pytest.approx(1.24, abs=0.005)


@built_together
def test_time_without_a_reading_for_over_an_hour_is_not_observed(cluster):
    serving = Serving(cluster)
    readings = {s: {"generation_tokens": s} for s in (0.0, 60.0, 2.0 * HOUR)}
    serving.engine("pod-silent", "silent").samples(readings)
    serving.load()
    yield
    sql = "select observed_ms, output_tokens from marts.serving_engines"
    assert cluster.read(sql).row(0) == (60_000, 60.0)


@pytest.mark.parametrize(("from_s", "found"), [(0, 1), (HOUR + 60, 0)])
@built_together
def test_a_queue_that_is_over_is_no_finding_of_a_later_window(cluster, from_s, found):
    """Of two replicas one has a queue in the first hour while the other is idle."""
    given.load(cluster, given.cases("queue_beside_idle", "fires")[0]["given"])
    yield
    sql = "select count(*) from marts.findings where rule = 'queue_beside_idle'"
    assert cluster.read(sql, Scope(START_MS + 1000 * from_s)).item() == found
