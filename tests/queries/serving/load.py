"""Serving engines under a made-up load: what they would report, and what a log of it says."""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.queries.loaders import Evidence, at, loaded_at_once

# of vLLM's time to first token
BOUNDS = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0),
    *(20.0, 40.0, 80.0, math.inf),
)


@dataclass
class Engine:
    """An engine and what it reports, besides what a request log says."""

    cluster: Evidence
    endpoint: str = "pod-0"
    model: str = "llama"
    role: str = "both"
    engine: str = ""
    node: str | None = None
    gpus: Sequence[str] = ()
    product: str = "vllm"
    restarts: Sequence[float] = ()
    _logged: int = field(default=0, repr=False)

    @property
    def _of(self):
        gpus = [self.cluster.gpu(gpu) for gpu in self.gpus]
        return {"cluster": self.cluster.name, "endpoint": self.endpoint, "node": self.node,
                "engine": self.engine, "model": self.model, "role": self.role,
                "product": self.product, "gpu_labels": gpus or None}  # fmt: skip

    def since(self, second):
        """Return when the process that answers in a second began to count."""
        return max((at for at in self.restarts if at <= second), default=-math.inf)

    def samples(self, readings):
        """Load values of counters (as they stand then) and gauges by second."""
        rows = [
            {**self._of, "metric": metric, "value": float(value), "ts": at(second)}
            for second, values in readings.items()
            for metric, value in values.items()
        ]
        self.cluster.load("serving_samples", rows)

    def histogram(self, metric, observations, seconds, bounds=BOUNDS):
        """Load cumulative buckets at each of the seconds; a restart sets them to 0."""
        seen = sorted(observations)
        rows = []
        for second in seconds:
            values = [v for t, v in seen if self.since(second) < t <= second]
            counts = [0] * len(bounds)
            for value in values:
                counts[bisect_left(bounds, value)] += 1
            for number, le in enumerate(bounds):
                rows.append({**self._of, "metric": metric, "ts": at(second),
                             "le_s": le, "observations": sum(counts[: number + 1]),
                             "sum_s": sum(values) if math.isinf(le) else None})  # fmt: skip
        self.cluster.load("serving_histograms", rows)

    def log(self, requests):
        """Load requests: `arrival`, `ttft` and `e2e` in seconds, tokens; of tenant `a`, unless."""
        rows = []
        for request in requests:
            arrival, ttft, e2e = request["arrival"], request.get("ttft"), request.get("e2e")
            self._logged += 1
            rows.append(
                {
                    "cluster": self.cluster.name, "endpoint": self.endpoint,
                    "request_id": f"{self.model}-{self._logged}", "model": self.model,
                    "arrival_at": at(arrival),
                    "first_token_at": None if ttft is None else at(arrival + ttft),
                    "end_at": None if e2e is None else at(arrival + e2e),
                    "input_tokens": request.get("input", 100),
                    "output_tokens": request.get("output", 11),
                    "status": request.get("status", "ok"), "tenant": request.get("tenant", "a"),
                }
            )  # fmt: skip
        self.cluster.load("serving_requests", rows)


def nearest_rank(values, q):
    """Return the value of which a share of `q` is at most as large."""
    ordered = sorted(values)
    return ordered[max(math.ceil(round(q * len(ordered), 9)), 1) - 1]


HOUR = 3_600
GPU_POWER_W = 500.0
PRICE = 3.6


def counters(rates, gauges):
    """Return readings of a minute over two hours; values and rates per second are by hour."""

    def total(by_hour, second):
        return by_hour[0] * min(second, HOUR) + by_hour[1] * max(second - HOUR, 0)

    return {
        float(second): {
            **{name: total(by_hour, second) for name, by_hour in rates.items()},
            **{name: by_hour[second > HOUR] for name, by_hour in gauges.items()},
        }
        for second in range(0, 2 * HOUR + 1, 60)
    }


def fleet(evidence):
    """Load two hours of one node: `llama`, `rare`, and `moe` with prefill and decode apart.

    The second hour has twice the tokens of `llama` and none of `rare`; `moe` answers at once.
    """
    evidence.node("n1", 4, watched=2 * HOUR)
    evidence.job("serve", 0, 2 * HOUR, ["n1"], 4, job_name="serve")
    evidence.add("rates", price_per_gpu_h=PRICE, cluster=None)
    for gpu in range(4):
        use = {"power_w": GPU_POWER_W, "engine_active_ratio": 0.9}
        evidence.readings(evidence.gpu(f"n1#{gpu}"), range(0, 2 * HOUR + 1, 60), **use)
    with loaded_at_once(evidence) as kept:
        _one_gpu_each(kept)
        _apart(kept)


def _one_gpu_each(cluster):
    llama = Engine(cluster, "pod-0", "llama", node="n1", gpus=["n1#0"])
    busy = {"requests_running": (10, 20), "requests_waiting": (0, 1), "kv_cache_ratio": (0.4, 0.8)}
    tokens = {"prompt_tokens": (50, 100), "generation_tokens": (100, 200)}
    cache = {"prefix_cache_queries": (50, 100), "prefix_cache_hits": (25, 75)}
    llama.samples(counters({**tokens, **cache, "requests_finished": (1, 2)}, busy))
    hours = (0.0, float(HOUR), 2.0 * HOUR)
    spent = {"prefill_s": 1.0, "decode_s": 3.0, "e2e_s": 4.0, "ttft_s": 1.0, "inter_token_s": 0.1}
    for metric, seconds in spent.items():
        seen = [(60.0 * minute, seconds) for minute in range(1, 121)]
        llama.histogram(metric, seen, hours)
    rare = Engine(cluster, "pod-1", "rare", node="n1", gpus=["n1#1"])
    rare.samples(counters({"generation_tokens": (10, 0)},
                          {"requests_running": (1, 0), "requests_waiting": (0, 0)}))  # fmt: skip


def _apart(cluster):
    for endpoint, role, gpus, output in (
        ("p-0", "prefill", ["n1#2"], (1, 1)),
        ("d-0", "decode", ["n1#3"], (4, 150)),
        ("f-0", "frontend", [], (4, 150)),
    ):
        engine = Engine(cluster, endpoint, "moe", role=role, node="n1", gpus=gpus, product="dynamo")
        engine.samples(counters({"prompt_tokens": (9, 9), "generation_tokens": output}, {}))
        if role == "frontend":
            slow = [(float(second), 5.5) for second in range(60, HOUR + 1, 60)]
            fast = [(float(second), 0.05) for second in range(HOUR + 60, 2 * HOUR + 1, 60)]
            engine.histogram("ttft_s", [*slow, *fast], (0.0, float(HOUR), 2.0 * HOUR))
            for seen in (slow, fast[:-1]):
                engine.log({"arrival": at - s, "ttft": s, "e2e": s + 1} for at, s in seen)
        else:  # which is not what a user sees
            engine.histogram("ttft_s", [(60.0, 9.9)] * 9, (0.0, float(HOUR)))
