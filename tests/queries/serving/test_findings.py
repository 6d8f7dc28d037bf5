"""Findings about serving engines: each fires on what it is about, and is quiet on the rest."""

import shutil
from pathlib import Path

import pytest
from tests.queries.conftest import START_MS, Evidence
from tests.queries.serving.load import HOUR, Serving, counters

from goodput_queries.scope import Scope

BUSY = {"requests_running": (4, 4), "requests_waiting": (0, 0), "kv_cache_ratio": (0.5, 0.5)}
IDLE = {**BUSY, "requests_running": (0, 0), "kv_cache_ratio": (0.0, 0.0)}
FULL = {**BUSY, "kv_cache_ratio": (0.97, 0.97), "requests_waiting": (3, 3)}


@pytest.fixture(scope="module")
def world(new_store):
    """Give models of which each has one fault, or looks like it and has none."""
    evidence = Evidence(new_store())
    evidence.watched(2 * HOUR)
    evidence.node("n1", 4)
    serving = Serving(evidence)
    _caches(serving)
    _replicas(serving)
    _tails(serving)
    _standby(serving)
    serving.load()
    evidence.build()
    yield evidence
    evidence.store.close()
    shutil.rmtree(Path(evidence.store.path).parent)


def _engine(serving, endpoint, model, gauges, tokens=(10, 10), **more):
    engine = serving.engine(endpoint, model, **more)
    engine.samples(counters({"generation_tokens": tokens}, gauges))
    return engine


def _caches(serving):
    _engine(serving, "full", "cache-a", FULL)
    # full, and nobody waits: that is what a cache is for
    _engine(serving, "used", "cache-b", {**FULL, "requests_waiting": (0, 0)})
    # for five minutes only
    short = serving.engine("short", "cache-c")
    readings = counters({"generation_tokens": (10, 10)}, FULL)
    short.samples({s: values for s, values in readings.items() if s <= 300})


def _replicas(serving):
    uneven = {**BUSY, "requests_running": (20, 20)}
    _engine(serving, "crowded", "uneven", uneven)
    _engine(serving, "empty", "uneven", BUSY)
    for number in range(2):
        _engine(serving, f"even-{number}", "even", BUSY)
    _engine(serving, "alone", "single", uneven)
    queue = {**BUSY, "requests_waiting": (5, 0)}
    _engine(serving, "queueing", "queue", queue)
    _engine(serving, "resting", "queue", IDLE, tokens=(0, 10))
    _engine(serving, "prefill-0", "apart", queue, role="prefill")
    _engine(serving, "decode-0", "apart", IDLE, role="decode")


def _tails(serving):
    for model, slow, many in (("tail", 30.0, 40), ("smooth", 0.9, 40), ("few", 30.0, 4)):
        engine = _engine(serving, f"{model}-0", model, BUSY)
        warm = [(1.0, 30.0)] * 8  # the first ones are slow, and count apart
        usual = [(100.0 + at, 0.3) for at in range(many * 49)]
        late = [(100.0 + at, slow) for at in range(many)]
        engine.histogram("ttft_s", [*warm, *usual, *late], (0.0, 60.0, 2.0 * HOUR))


def _standby(serving):
    _engine(serving, "standby", "idle", IDLE, tokens=(0, 0), node="n1", gpus=["n1#0"])
    resting = {**BUSY, "requests_running": (4, 0)}
    # of half an hour without a request it is not worth to load a model again
    engine = serving.engine("pause", "pause", node="n1", gpus=["n1#1"])
    readings = counters({"generation_tokens": (10, 0)}, resting)
    engine.samples({s: values for s, values in readings.items() if s <= 1.4 * HOUR})


@pytest.fixture(scope="module")
def findings(world):
    """Give the findings of the whole time."""
    return world.read("select rule, detail, evidence from marts.serving_findings").rows()


def found(findings, rule):
    return {detail: evidence for of_rule, detail, evidence in findings if of_rule == rule}


@pytest.mark.quiet("kv_cache_full")
@pytest.mark.fires("kv_cache_full")
def test_a_full_kv_cache_is_a_finding_while_requests_wait(findings):
    ((engine, evidence),) = found(findings, "kv_cache_full").items()

    assert engine == "full"
    assert evidence == (
        "full, cache-a: KV cache over 95.0 % with requests waiting or preempted for 120 min, "
        "100.0 % of the time read"
    )


@pytest.mark.quiet("replica_imbalance")
@pytest.mark.fires("replica_imbalance")
def test_a_replica_with_far_more_requests_than_the_others_is_a_finding(findings):
    found_, evidence = found(findings, "replica_imbalance"), "crowded has 20.0 requests on average"

    assert set(found_) == {"uneven", "queue"}
    assert evidence in found_["uneven"]


@pytest.mark.quiet("queue_beside_idle")
@pytest.mark.fires("queue_beside_idle")
def test_a_queue_beside_an_idle_replica_of_the_same_role_is_a_finding(world, findings):
    ((replicas, evidence),) = found(findings, "queue_beside_idle").items()

    assert replicas == "queue"
    assert evidence.startswith("queue: in 60 minutes requests waited at one replica (queueing")
    later = Scope(START_MS + 1000 * HOUR + 60_000)
    sql = "select count(*) from marts.serving_findings where rule = 'queue_beside_idle'"
    assert world.read(sql, later).item() == 0


@pytest.mark.quiet("latency_tail")
@pytest.mark.fires("latency_tail")
def test_a_long_tail_is_a_finding_where_the_bounds_of_the_buckets_leave_no_doubt(findings):
    """K01: a fiftieth of the requests takes 30 s, the median under 0.5 s: from 20 s on."""
    ((engine, evidence),) = found(findings, "latency_tail").items()

    assert engine == "tail-0"
    assert evidence == (
        "tail-0, tail: p99 of the time to the first token is over 20 s, p50 at most 0.5 s: at "
        "least 40 times, of 2000 requests"
    )


@pytest.mark.quiet("serving_standby")
@pytest.mark.fires("serving_standby")
def test_an_engine_without_requests_is_a_finding_with_its_cost(findings):
    ((engine, evidence),) = found(findings, "serving_standby").items()

    assert engine == "standby"
    assert evidence == (
        "standby, idle: no request running or waiting for 2.0 h, 100.0 % of the time read"
    )


def test_they_are_findings_with_the_node_and_the_gpu(world):
    rows = world.read(
        "select rule, subject, severity, state from marts.findings where kind = 'serving' "
        "order by rule, subject"
    ).rows()

    assert [row for row in rows if row[0] == "serving_standby"] == [
        ("serving_standby", "n1, GPU 0", "warning", "open")
    ]
    assert {row[0] for row in rows} == {
        *("kv_cache_full", "replica_imbalance", "queue_beside_idle"),
        *("latency_tail", "serving_standby"),
    }  # fmt: skip
