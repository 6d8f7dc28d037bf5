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


FULL_CACHE = (
    "full, cache-a: KV cache over 95.0 % with requests waiting or preempted for 120 min, "
    "100.0 % of the time read"
)
TAIL = (  # K01: a fiftieth of the requests takes 30 s, the median under 0.5 s: from 20 s on
    "tail-0, tail: p99 of the time to the first token is over 20 s, p50 at most 0.5 s: at "
    "least 40 times, of 2000 requests"
)
QUEUE = "queue: in 60 minutes requests waited at one replica (queueing"
STANDBY = "standby, idle: no request running or waiting for 2.0 h, 100.0 % of the time read"
# rule: of what it is found, and of nothing else; what its evidence contains
FOUND = {
    "kv_cache_full": {"full": FULL_CACHE},
    "replica_imbalance": {"uneven": "crowded has 20.0 requests on average", "queue": ""},
    "queue_beside_idle": {"queue": QUEUE},
    "latency_tail": {"tail-0": TAIL},
    "serving_standby": {"standby": STANDBY},
}


@pytest.mark.fires("kv_cache_full", "replica_imbalance", "queue_beside_idle")
@pytest.mark.fires("latency_tail", "serving_standby")
@pytest.mark.quiet("kv_cache_full", "replica_imbalance", "queue_beside_idle")
@pytest.mark.quiet("latency_tail", "serving_standby")
@pytest.mark.parametrize(("rule", "expected"), FOUND.items(), ids=FOUND)
def test_each_rule_finds_its_own_model_alone(world, rule, expected):
    sql = "select detail, evidence from marts.serving_findings where rule = '{}'"
    found = dict(world.read(sql.format(rule)).rows())

    assert found.keys() == expected.keys()
    assert all(text in found[subject] for subject, text in expected.items())


def test_a_queue_that_is_over_is_no_finding_of_a_later_window(world):
    later = Scope(START_MS + 1000 * HOUR + 60_000)
    sql = "select count(*) from marts.serving_findings where rule = 'queue_beside_idle'"
    assert world.read(sql, later).item() == 0


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
