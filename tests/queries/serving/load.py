"""Serving engines under a made-up load: what they would report, and what a log of it says."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from tests.queries.conftest import Evidence

# of vLLM's time to first token
BOUNDS = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0),
    *(20.0, 40.0, 80.0, math.inf),
)
Observation = tuple[float, float]  # second, value


@dataclass
class Serving:
    """Engines whose rows are loaded together, since each load takes time."""

    evidence: Evidence
    waiting: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def engine(self, endpoint: str = "pod-0", model: str = "llama", **more: Any) -> Engine:
        """Return an engine of this load."""
        return Engine(self, endpoint, model, **more)

    def add(self, table: str, rows: list[dict[str, Any]]) -> None:
        """Keep rows of a raw table until `load`."""
        self.waiting.setdefault(table, []).extend(rows)

    def load(self) -> None:
        """Load what waits."""
        for table, rows in self.waiting.items():
            self.evidence.load(table, rows)
        self.waiting.clear()

    def at(self, second: float) -> datetime | None:
        """Return the moment of a second."""
        return self.evidence.at(second)


@dataclass
class Engine:
    """An engine and what it reports, besides what a request log says."""

    serving: Serving
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
    def _of(self) -> dict[str, Any]:
        return {
            "cluster": self.serving.evidence.name, "endpoint": self.endpoint, "node": self.node,
            "engine": self.engine, "model": self.model, "role": self.role,
            "product": self.product, "gpu_labels": list(self.gpus) or None,
        }  # fmt: skip

    def since(self, second: float) -> float:
        """Return when the process that answers in a second began to count."""
        return max((at for at in self.restarts if at <= second), default=-math.inf)

    def samples(self, readings: dict[float, dict[str, float]]) -> None:
        """Load values of counters (as they stand then) and gauges by second."""
        rows = [
            {**self._of, "metric": metric, "value": float(value), "ts": self.serving.at(second)}
            for second, values in readings.items()
            for metric, value in values.items()
        ]
        self.serving.add("serving_samples", rows)

    def histogram(
        self,
        metric: str,
        observations: Iterable[Observation],
        seconds: Iterable[float],
        bounds: Sequence[float] = BOUNDS,
    ) -> None:
        """Load cumulative buckets at each of the seconds; a restart sets them to 0."""
        seen = sorted(observations)
        rows = []
        for second in seconds:
            values = [v for t, v in seen if self.since(second) < t <= second]
            counts = [0] * len(bounds)
            for value in values:
                counts[bisect_left(bounds, value)] += 1
            for number, le in enumerate(bounds):
                rows.append(
                    {
                        **self._of, "metric": metric, "ts": self.serving.at(second), "le_s": le,
                        "observations": sum(counts[: number + 1]),
                        "sum_s": sum(values) if math.isinf(le) else None,
                    }
                )  # fmt: skip
        self.serving.add("serving_histograms", rows)

    def log(self, requests: Iterable[dict[str, Any]]) -> None:
        """Load requests: `arrival`, `ttft` and `e2e` in seconds, tokens; of tenant `a`, unless."""
        rows = []
        for request in requests:
            arrival, ttft, e2e = request["arrival"], request.get("ttft"), request.get("e2e")
            self._logged += 1
            rows.append(
                {
                    "cluster": self.serving.evidence.name, "endpoint": self.endpoint,
                    "request_id": f"{self.model}-{self._logged}", "model": self.model,
                    "arrival_at": self.serving.at(arrival),
                    "first_token_at": None if ttft is None else self.serving.at(arrival + ttft),
                    "end_at": None if e2e is None else self.serving.at(arrival + e2e),
                    "input_tokens": request.get("input", 100),
                    "output_tokens": request.get("output", 11),
                    "status": request.get("status", "ok"), "tenant": request.get("tenant", "a"),
                }
            )  # fmt: skip
        self.serving.add("serving_requests", rows)


def nearest_rank(values: Iterable[float], q: float) -> float:
    """Return the value of which a share of `q` is at most as large."""
    ordered = sorted(values)
    return ordered[max(math.ceil(round(q * len(ordered), 9)), 1) - 1]
