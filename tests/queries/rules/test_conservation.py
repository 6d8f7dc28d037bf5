"""Properties of the ledger that hold for any evidence, however contradictory."""

from collections import Counter
from itertools import pairwise
from math import inf

import pytest
from hypothesis import strategies as st
from tests.examples import drawn
from tests.queries.conftest import START_MS, Cluster, at, build_together, built_in, durable, steps
from tests.queries.ledger_build.full_rebuild import assert_equals_full_build

from goodput_queries.ledger import capacity_ms, ledger
from goodput_queries.objectives.serving import ServingObjective
from goodput_queries.scope import EVERYTHING, Scope

SPAN_S = 3 * 3600
PHASES = ["init", "restore", "ckpt_save", "eval", "data_wait", "custom:warmup"]
STATES = ["COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL", "PREEMPTED"]


def seconds(lo=0, hi=SPAN_S):
    """Return moments with millisecond fractions, so that floors are exercised."""
    return st.integers(int(lo * 1000), int(hi * 1000)).map(lambda ms: ms / 1000)


@st.composite
def contradictory_evidence(draw):
    """Return calls on `Evidence`: jobs that overlap, phases outside of them, held nodes down."""
    calls = []
    for number in range(draw(st.integers(1, 5))):
        start = draw(seconds(0, SPAN_S - 100))
        end = draw(st.one_of(st.none(), seconds(start + 1)))
        nodes = draw(st.sampled_from([["a"], ["b"], ["a", "b"]]))
        gpus = draw(st.integers(1, 4 * len(nodes)))
        job = str(number)
        state = "RUNNING" if end is None else draw(st.sampled_from(STATES))
        suspended = draw(st.sampled_from([0, 0, 30]))
        calls.append(("job", (job, start, end, nodes, gpus, state), {"suspended_s": suspended}))
        if draw(st.booleans()):
            events = [{"event": "job.start", "t": start + 1}]
            moment = start
            for step in range(draw(st.integers(0, 12))):
                length = draw(seconds(0.05, 60))
                moment += length + draw(st.sampled_from([0, 0, 0.004, 20]))
                events.append({"event": "step", "step": step, "t": moment, "dur_s": length,
                               "data_s": draw(st.sampled_from([None, 0.0, 0.02, 100.0])),
                               "straggler_s": draw(st.sampled_from([None, 0.01, 5.0])),
                               "comm_s": draw(st.sampled_from([None, 0.01, 5.0]))})  # fmt: skip
            for _ in range(draw(st.integers(0, 3))):
                begin = draw(seconds())
                phase = {"phase": draw(st.sampled_from(PHASES))}
                events.append({"event": "phase.start", **phase, "t": begin})
                if draw(st.booleans()):
                    end = begin + draw(seconds(0, 600))
                    events.append({"event": "phase.end", **phase, "t": end})
            if draw(st.booleans()):
                events.append(durable(draw(st.integers(0, 12)), moment))
            attempt = draw(st.integers(0, 1))
            calls.append(("events", (job, events), {"attempt": attempt, "host": nodes[0]}))
    for node in "ab":
        for state in draw(st.lists(st.sampled_from(["down", "drained", "planned"]), max_size=2)):
            start = draw(seconds(0, SPAN_S - 100))
            end = draw(st.one_of(st.none(), seconds(start + 1)))
            calls.append(("state", (node, state, start, end), {}))
    for gpu in ("a#0", "a#1", "b#3"):
        begin, end = sorted((draw(seconds()), draw(seconds())))
        every = draw(st.sampled_from([10, 30, 31]))
        quiet_from = draw(seconds())
        readings = [begin + k * every for k in range(int((end - begin) // every))]
        if readings:
            works = lambda second, until=quiet_from: second < until  # noqa: E731 -- of one job
            calls.append(("samples", (gpu, readings, works), {}))
    for node in draw(st.sampled_from(["", "a", "ab"])):
        calls.extend(serving(draw, node))
    return calls


def serving(draw, node):
    """Return what engines of a node report: restarts, holes, histograms, requests of any length."""
    calls = []
    for port in draw(st.sampled_from([["0"], ["0", "1"]])):
        of = {"endpoint": f"{node}:{port}", "engine": "", "node": node,
              "model": draw(st.sampled_from(["m", "other"])), "role": "",
              "product": "vllm"}  # fmt: skip
        moment, tokens, rows = draw(seconds(0, SPAN_S - 3000)), 0, []
        for _ in range(draw(st.integers(1, 12))):
            moment += draw(st.sampled_from([15, 15, 30.001, 700, 2000]))
            tokens = draw(st.sampled_from([tokens, tokens + 50, tokens + 50, 0]))
            rows.append({**of, "ts": at(moment), "metric": "generation_tokens", "value": tokens})
        calls.append(("add", ("serving_samples", *rows), {}))
        counts = draw(st.lists(st.integers(0, 9), min_size=3, max_size=3))
        buckets = [
            {**of, "metric": "ttft_s", "ts": row["ts"], "le_s": le_s, "observations": count * place}
            for place, row in enumerate(rows)
            for le_s, count in zip((0.25, 1.0, inf), sorted(counts), strict=True)
        ]
        calls.append(("add", ("serving_histograms", *buckets), {}))
    requests = []
    for number in range(draw(st.integers(0, 4))):
        start, length = draw(seconds()), draw(st.sampled_from([0, 0.3, 70, 900, 5000]))
        requests.append({
            "endpoint": f"{node}:0", "request_id": f"{node}{number}", "model": "m",
            "arrival_at": at(start), "end_at": at(start + length), "status": "ok",
            "first_token_at": at(start + draw(st.sampled_from([0, 0.6]))),
            "output_tokens": draw(st.integers(0, 500)),
        })  # fmt: skip
    return [*calls, ("add", ("serving_requests", *requests), {})] if requests else calls


def fleet(evidence):
    evidence.node("a", 4)
    evidence.node("b", 4, watched=SPAN_S)
    evidence.store.serving_objectives = (ServingObjective("m", ttft_s=0.5),)


def spent(store, scope=EVERYTHING):
    """Return the time of each cluster by category."""
    rows = ledger(store, by=["cluster", "category"], scope=scope)
    return Counter(
        dict(zip(rows.select("cluster", "category").rows(), rows["gpu_ms"], strict=True))
    )


def segments(store):
    sql = "select * from intermediate.int_ledger_segments order by gpu_uuid, gpu_instance, start_ms"
    return store.read(sql).rows()


@pytest.mark.machine  # random worlds, each a cluster of one database
def test_any_evidence_is_in_one_category_in_parts_and_windows(own_store):
    """Built in two parts as at once, and the sums of adjacent windows are those of the whole."""
    worlds = drawn(st.tuples(contradictory_evidence(), st.integers(1, 10), seconds()), 6)
    store = own_store()
    clusters = [Cluster(store, f"c{n}", first_pid=100 * n) for n in range(len(worlds))]
    for cluster in clusters:
        fleet(cluster)
    for is_rest in (False, True):
        for cluster, (calls, part, _) in zip(clusters, worlds, strict=True):
            cluster.call(*(calls[part:] if is_rest else calls[:part]))
        build_together(store, f"rest {is_rest}", clusters)
    in_parts = segments(store)
    store.build(is_full=True)

    assert segments(store) == in_parts
    assert clusters[0].violations() == 0
    whole = spent(store)
    assert sum(whole.values()) == capacity_ms(store)
    bounds = [None, *sorted({START_MS + int(1000 * cut) for _, _, cut in worlds}), None]
    windows = (Scope(from_ms=lo, to_ms=hi) for lo, hi in pairwise(bounds))
    assert sum((spent(store, window) for window in windows), Counter()) == whole


def test_the_number_of_threads_never_matters(new_evidence):
    """All other tests have one."""
    evidence = new_evidence(threads=2)
    fleet(evidence)
    evidence.job("1", 10, 9000, ["a", "b"], 8)
    evidence.events("1", [{"event": "job.start", "t": 11}, *steps(1, 300, 60)])

    assert evidence.gpu_s() == {"startup": 8 * 50, "step_unsplit": 8 * 3000, "teardown": 8 * 5940,
                     "idle_no_demand": 8 * (SPAN_S - 8990)}  # fmt: skip


@built_in(3)
def test_the_clusters_of_all_rules_balance_and_have_the_rows_of_a_full_build(cluster):
    """Their tests load them in up to three builds: full builds of each alone take minutes."""
    for _ in range(3):
        yield
        assert cluster.violations() == 0
    assert_equals_full_build(cluster)
