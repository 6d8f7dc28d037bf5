"""Serving telemetry that comes late gives the ledger of evidence that came in order."""

from math import inf

import pytest
from tests.queries.conftest import built_file
from tests.queries.ledger_build.full_rebuild import assert_equals_full_build
from tests.queries.serving.engines import buckets, engine, request, scrapes

from goodput_queries.objectives.serving import ServingObjective

HOUR_S = 3600
OBJECTIVES = (ServingObjective("limited*", ttft_s=0.5, inter_token_s=0.05),)


def tokens(second):
    """Return what an engine has generated that works every other ten minutes."""
    return 10 * (second // 1200 * 600 + min(second % 1200, 600))


@built_file
def built(evidence):
    """Give four hours of two nodes: one serves, and was scraped from the second hour on."""
    evidence.store.serving_objectives = OBJECTIVES
    for node in ("a", "b"):
        evidence.node(node, 2)
        evidence.job(f"job-{node}", 0, None, [node], 2, state="RUNNING")
        for index in range(2):
            evidence.samples(f"{node}#{index}", evidence.every(0, 4 * HOUR_S, 60), lambda _: 1)
    evidence.watched(4 * HOUR_S)
    scrapes(evidence, engine(evidence), range(HOUR_S, 4 * HOUR_S + 1, 30), tokens)


@pytest.fixture
def served(new_evidence, built):
    evidence = new_evidence(copy_of=built)
    evidence.store.serving_objectives = OBJECTIVES
    return evidence


def hours(evidence):
    """Return the categories of node a in each hour, with seconds."""
    evidence.store.build()
    sql = """select (hour_ms - 1800000000000) // 3600000, category, sum(gpu_ms)::bigint / 1000
        from marts.ledger_hourly where node = 'a' group by all"""
    rows = evidence.store.read(sql).rows()
    return {hour: {c: s for of, c, s in rows if of == hour} for hour, *_ in rows}


def test_late_evidence_reopens_its_hours(served):
    before = hours(served)
    assert before[0] == {"busy_unclassified": 7200}
    assert before[2] == {"at_risk": 3600, "idle_held": 3600}

    scrapes(served, engine(served), range(0, HOUR_S, 30), tokens)
    assert hours(served)[0] == {"at_risk": 3600, "idle_held": 3600}

    buckets(served, engine(served), "ttft_s", {0.5: 3, inf: 4}, minutes=range(61, 180))
    buckets(served, engine(served), "inter_token_s", {0.05: 3, inf: 3}, minutes=range(61, 180))
    found = hours(served)
    assert found[2] == {"productive": 2700, "lost_work": 900, "idle_held": 3600}
    assert found[3] == {"at_risk": 3600, "idle_held": 3600}

    served.load("serving_requests", [request(served, "1", 3 * HOUR_S + 60, 3 * HOUR_S + 1000)])
    assert hours(served)[3]["lost_work"] == 2 * 940
    assert_equals_full_build(served)
    served.store.serving_objectives = ()
    assert hours(served)[2] == {"step_unsplit": 3600, "idle_held": 3600}, "nothing is at risk"


def test_a_restart_and_engines_that_come_late(served):
    """Of the second engine only a request was known."""
    known = [request(served, "1", HOUR_S + 60, HOUR_S + 1000, endpoint="b:8001")]
    served.load("serving_requests", known)
    scrapes(served, engine(served, "b"), range(2 * HOUR_S, 3 * HOUR_S, 30), tokens)
    served.store.build()
    second = {"endpoint": "b:8001", "engine": "7"}
    scrapes(served, engine(served, "b", **second), range(2 * HOUR_S, 3 * HOUR_S, 30), tokens)
    served.store.build()
    of_second = "from intermediate.int_serving_timeline where endpoint = 'b:8001'"
    assert served.store.read(f"select distinct engine {of_second}").rows() == [("7",)]

    scrapes(served, engine(served, "b"), range(3 * HOUR_S + 600, 4 * HOUR_S, 30),
            lambda s: tokens(s) - tokens(3 * HOUR_S))  # fmt: skip
    assert_equals_full_build(served)
    columns = "endpoint, gpu_uuid, method, is_in_order"
    of_b = "from intermediate.int_serving_gpus where node = 'b' order by all"
    assert served.store.read(f"select {columns} {of_b}").rows() == [
        ("b:8000", "c/b#0", "job_run", True), ("b:8001", "c/b#1", "job_run", True)]  # fmt: skip


KEPT = "select model, ttft_s, inter_token_s, e2e_s, target from state.serving_objectives"


def test_a_build_keeps_them_and_is_a_full_one_where_they_are_others(new_store):
    store = new_store()
    store.build()
    store.serving_objectives = (
        ServingObjective("llama-*", ttft_s=0.5, target=0.99),
        ServingObjective(inter_token_s=0.05),
    )

    assert store.build().height > 0, "nothing was loaded, but the ledger may depend on them"
    assert store.build().height == 0
    kept = [("llama-*", 0.5, None, None, 0.99), ("*", None, 0.05, None, None)]
    assert store.read(f"{KEPT} order by place").rows() == kept

    store.serving_objectives = None
    assert store.build().height == 0
    assert store.read(f"{KEPT} order by place").rows() == kept, "no setting says otherwise"

    store.serving_objectives = ()
    assert store.build().height > 0
    assert store.read(KEPT).height == 0
