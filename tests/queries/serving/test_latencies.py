"""Latencies of requests: quantiles of histograms with their bounds, and exact ones of logs."""

from __future__ import annotations

import math
import random

import pytest
from tests.queries.serving.load import BOUNDS, Serving, nearest_rank

from goodput_queries.scope import Scope

START_MS = 1_800_000_000_000
QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
LOADS = 100


@pytest.fixture
def serving(evidence):
    """Give an empty load."""
    return Serving(evidence)


def rows(serving, where="true", **scope):
    sql = f"select * from marts.serving_latencies where {where} order by all"
    return serving.evidence.read(sql, Scope(**scope)).to_dicts()


def row(serving, where, **scope):
    (found,) = rows(serving, where, **scope)
    return found


def random_load(seed):
    """Return requests of one of several shapes, the latencies with whole milliseconds."""
    rng = random.Random(seed)
    shape = seed % 4
    requests = []
    for _ in range(rng.choice((1, 2, 7, 40, 160))):
        if shape == 0:
            ttft = rng.lognormvariate(-2, 1.5)
        elif shape == 1:
            ttft = rng.choice((0.02, 12.0)) * rng.uniform(0.9, 1.1)
        elif shape == 2:
            ttft = rng.choice(BOUNDS[:-1])  # on a bound, which is part of the bucket
        else:
            ttft = rng.paretovariate(0.8) * 0.05  # some over the last bound
        ttft = max(round(min(ttft, 900.0), 3), 0.001)
        e2e = round(ttft + rng.expovariate(0.5), 3)
        requests.append({"arrival": round(rng.uniform(0, 600), 3), "ttft": ttft, "e2e": e2e})
    return requests


def test_bounds_contain_the_quantiles_of_the_log_in_all_of_100_random_loads(serving):
    """Half of them with a restart; the quantiles of the log are those of Python."""
    truth = {}
    for seed in range(LOADS):
        requests = random_load(seed)
        restarts, seconds = (), (-10.0, 1999.0)
        if seed % 2:  # then it counts from 0, and a third of the load comes again
            again = requests[: len(requests) // 3]
            requests += [{**r, "arrival": r["arrival"] + 2100} for r in again]
            restarts, seconds = (2000.0,), (-10.0, 1999.0, 5000.0)
        engine = serving.engine(f"pod-{seed}", f"model-{seed:02}", restarts=restarts)
        engine.log(requests)
        for metric in ("ttft", "e2e"):
            seen = [(r["arrival"] + r[metric], r[metric]) for r in requests]
            engine.histogram(f"{metric}_s", seen, seconds)
            truth[engine.model, f"{metric}_s"] = [value for _, value in seen]
    serving.load()

    found = {
        (r["model"], r["metric"], r["method"]): r
        for r in rows(serving, "level = 'model' and metric in ('ttft_s', 'e2e_s')")
    }
    assert len(found) == 2 * len(truth) == 4 * LOADS
    for (model, metric), values in truth.items():
        of_buckets, of_log = (found[model, metric, how] for how in ("histogram", "requests"))
        assert of_buckets["observations"] == of_log["observations"] == len(values)
        assert of_buckets["mean_s"] == pytest.approx(sum(values) / len(values))
        assert of_log["mean_s"] == pytest.approx(sum(values) / len(values))
        for name, q in QUANTILES.items():
            exact = nearest_rank(values, q)
            low, high = of_buckets[f"{name}_low_s"], of_buckets[f"{name}_high_s"]
            assert low < exact <= (math.inf if high is None else high), (model, metric, q)
            assert of_log[f"{name}_s"] == pytest.approx(exact)
