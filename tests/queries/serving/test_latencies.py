"""Latencies of requests: quantiles of histograms with their bounds, and exact ones of logs."""

import math
import random

import pytest
from tests.queries.conftest import START_MS, built_once, read_from_world
from tests.queries.loaders import loaded_at_once
from tests.queries.serving.load import BOUNDS, Engine, nearest_rank

from goodput_queries.scope import Scope

LOADS = 100


def random_load(seed):
    """Return requests of one of several shapes, the latencies with whole milliseconds."""
    rng = random.Random(seed)  # noqa: S311 -- a load, no secret
    requests = []
    shapes = (
        lambda: rng.lognormvariate(-2, 1.5),
        lambda: rng.choice((0.02, 12.0)) * rng.uniform(0.9, 1.1),
        lambda: rng.choice(BOUNDS[:-1]),  # on a bound, which is part of the bucket
        lambda: rng.paretovariate(0.8) * 0.05,  # some over the last bound
    )
    for _ in range(rng.choice((1, 2, 7, 40, 160))):
        ttft = max(round(min(shapes[seed % 4](), 900.0), 3), 0.001)
        e2e = round(ttft + rng.expovariate(0.5), 3)
        requests.append({"arrival": round(rng.uniform(0, 600), 3), "ttft": ttft, "e2e": e2e})
    return requests


def test_bounds_contain_the_quantiles_of_the_log_in_all_of_100_random_loads(evidence):
    """Half of them with a restart; the quantiles of the log are those of Python."""
    truth = {}
    with loaded_at_once(evidence) as kept:
        for seed in range(LOADS):
            requests = random_load(seed)
            restarts, seconds = (), (-10.0, 1999.0)
            if seed % 2:  # then it counts from 0, and a third of the load comes again
                again = requests[: len(requests) // 3]
                requests += [{**r, "arrival": r["arrival"] + 2100} for r in again]
                restarts, seconds = (2000.0,), (-10.0, 1999.0, 5000.0)
            engine = Engine(kept, f"pod-{seed}", f"model-{seed:02}", restarts=restarts)
            engine.log(requests)
            for metric in ("ttft", "e2e"):
                seen = [(r["arrival"] + r[metric], r[metric]) for r in requests]
                engine.histogram(f"{metric}_s", seen, seconds)
                truth[engine.model, f"{metric}_s"] = [value for _, value in seen]

    sql = "from marts.serving_latencies where level = 'model' and metric in ('ttft_s', 'e2e_s')"
    rows = evidence.read(sql).to_dicts()
    found = {(row["model"], row["metric"], row["method"]): row for row in rows}
    assert len(found) == 2 * len(truth) == 4 * LOADS
    for (model, metric), values in truth.items():
        of_buckets, of_log = (found[model, metric, how] for how in ("histogram", "requests"))
        assert of_buckets["observations"] == of_log["observations"] == len(values)
        assert of_buckets["mean_s"] == pytest.approx(sum(values) / len(values))
        assert of_log["mean_s"] == pytest.approx(sum(values) / len(values))
        for name, q in {"p50": 0.5, "p95": 0.95, "p99": 0.99}.items():
            exact = nearest_rank(values, q)
            low, high = of_buckets[f"{name}_low_s"], of_buckets[f"{name}_high_s"]
            assert low < exact <= (math.inf if high is None else high), (model, metric, q)
            assert of_log[f"{name}_s"] == pytest.approx(exact)


@built_once
def world(evidence):
    """Give engines that start, restart, have other buckets, a frontend, and objectives."""
    engine = Engine(evidence, "pod-0", "cold", restarts=(500.0,))
    first = [(10.0 + n, 5.0) for n in range(8)]
    usual = [(110.0 + n / 10, 0.3) for n in range(100)]
    again = [(510.0 + n / 10, 0.3) for n in range(20)]
    engine.histogram("ttft_s", [*first, *usual, *again], (0.0, 60.0, 400.0, 600.0))
    for endpoint, role, ttft_s in (("engine", "both", 0.3), ("frontend", "frontend", 0.9)):
        engine = Engine(evidence, endpoint, "gate", role=role)
        engine.histogram("ttft_s", [(10.0, ttft_s)] * 20, (0.0, 60.0))
    _objectives(evidence)
    coarse = (0.1, 1.0, 10.0, math.inf)
    for endpoint, bounds in (("fine", BOUNDS), ("coarse", coarse)):
        engine = Engine(evidence, endpoint, "mixed")
        engine.histogram("ttft_s", [(10.0, 0.3)] * 50, (0.0, 100.0), bounds)
    with evidence.store.cursor() as cursor:
        cursor.execute("insert into state.serving_objectives (place, model, ttft_s, e2e_s, target) "
                       "values (0, 'chat*', 0.5, 3.0, 0.9), (1, '*', 99, null, null)")  # fmt: skip


def _objectives(evidence):
    """Of 100 requests 10 are late with the first token, 20 at the end, 5 of them with both."""
    engine = Engine(evidence, "pod-1", "chat-7b")
    requests = [{"arrival": float(n), "ttft": 0.6 if n < 10 else 0.2,
                 "e2e": 3.5 if 5 <= n < 25 else 2.0, "status": "error" if n == 99 else "ok"}
                for n in range(100)]  # fmt: skip
    engine.log(requests)
    for metric in ("ttft", "e2e"):
        seen = [(r["arrival"] + r[metric], r[metric]) for r in requests]
        engine.histogram(f"{metric}_s", seen, (-5.0, 200.0))


def of(model, columns, where="level = 'model'"):
    """Return what reads columns of a model's latencies."""
    return (f"select {columns} from marts.serving_latencies where model = '{model}' and {where} "
            "order by all")  # fmt: skip


WINDOW = Scope(from_ms=START_MS + 60_000, to_ms=START_MS + 400_000)
test_latencies_of_engines = read_from_world({
    # the reading after the restart has more than eight
    "the first requests after a start are separate": (
        of("cold", "is_cold, observations, round(mean_s, 6) <= 0.3, p99_high_s <= 0.5"),
        [(False, 100, True, True), (True, 8 + 20, False, False)]),
    "those after each start": (
        "select requests from marts.serving_cold_starts where model = 'cold' order by start_ms",
        [(8,), (20,)]),
    # up to the end of it, and without what the reading before it had
    "a window has what was observed in it": (
        of("cold", "is_cold, observations"), [(False, 100)], WINDOW),
    "histograms with other buckets have the bounds that all of them have": (
        of("mixed", "observations, round(mean_s, 6), p50_low_s, p50_high_s"),
        [(100, 0.3, 0.1, 1.0)]),
    "an engine has its own": (
        of("mixed", "p50_low_s, p50_high_s", "endpoint = 'fine' and level = 'engine'"),
        [(0.25, 0.5)]),
    "the latency of a model is that of its frontend": (of("gate", "p50_low_s"), [(0.75,)]),
    "a role has its own": (
        of("gate", "role, p50_low_s", "level = 'role'"), [("both", 0.25), ("frontend", 0.75)]),
    "a tenant names where it waits longest": (
        "select tenant, slowest_endpoint, round(p50_ttft_s, 6), round(p99_ttft_s, 6), requests, "
        "failed_requests from marts.serving_tenants", [("a", "pod-1", 0.2, 0.6, 100, 1)]),
})  # fmt: skip


def test_attainment_of_histograms_encloses_that_of_the_log(world):
    """25 of 100 were late, one failed; limits that are bounds of buckets leave the joint share."""
    sql = "select * from marts.serving_attainment where model = 'chat-7b' order by method"
    of_buckets, of_log = world.read(sql).to_dicts()

    assert (of_log["method"], of_log["pattern"]) == ("requests", "chat*")
    expected = {"requests": 100, "attained_low_ratio": 0.74, "attained_high_ratio": 0.74,
                "budget_requests": 10, "budget_spent_low_ratio": 2.6, "is_met": False}  # fmt: skip
    assert {name: of_log[name] for name in expected} == pytest.approx(expected)
    # the limit of 3 s lies between 2.5 and 5 s, where the late ones end; 0.9 may be attained
    expected = {"attained_low_ratio": 0.7, "attained_high_ratio": 0.9, "is_met": None}
    assert {name: of_buckets[name] for name in expected} == pytest.approx(expected)
