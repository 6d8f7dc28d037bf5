"""Requests to a serving engine, and when it serves them: a queue, slots, prefill and decode.

An engine takes the requests in turn into a batch of `slots`. A prompt takes its tokens over the
prefill rate, tokens come at one distance for each request, the longer the more requests run.
"""

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

SECOND: Final = 1000
INPUT_MEDIAN, OUTPUT_MEDIAN = 700.0, 160.0
LENGTH_SPREAD: Final = 0.7  # of the logarithm
TOKENS_MAX: Final = 8_000
CACHED_SHARES: Final = (0.0, 0.0, 0.5, 0.9)  # of a prompt that is in the prefix cache
ABORTED_SHARE: Final = 0.02


@dataclass(frozen=True)
class Engine:
    """One engine of a product, and how fast it is.

    product: as in `reference.serving_metrics`. endpoint: host:port of its exporter. labels: what
    Prometheus adds to each series (pod, namespace, node). release: "earlier" is a vLLM before its
    metrics were renamed. prefill_tokens_per_s, inter_token_s: of one request alone; each other one
    in the batch makes tokens `slowdown` longer. kv_tokens: capacity of the KV cache.
    """

    product: str
    model: str
    endpoint: str
    labels: tuple[tuple[str, str], ...] = ()
    release: str = "current"
    slots: int = 16
    prefill_tokens_per_s: float = 8_000.0
    inter_token_s: float = 0.02
    slowdown: float = 0.05
    kv_tokens: int = 200_000


@dataclass(frozen=True)
class Arrival:
    """One request as the client sends it; output_tokens: as many as it would take."""

    at_ms: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    is_aborted: bool = False
    tenant: str = ""


@dataclass(frozen=True)
class Life:
    """One life of the engine's process: its exporter answers from `up_ms` until `end_ms`."""

    up_ms: int
    end_ms: int


@dataclass(frozen=True)
class Request:
    """One request as it was served.

    status: ok, aborted (by the client, half-way) or error (the engine ended before). life: the
    index of the life that took it; None: the engine was away.
    """

    request_id: str
    arrival_ms: int
    start_ms: int | None
    first_token_ms: int | None
    end_ms: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    inter_token_ms: float
    status: str
    tenant: str
    life: int | None


@dataclass(frozen=True, eq=False)  # equal is only the same: pages are kept by it
class Load:
    """What an engine served in its lives."""

    engine: Engine
    requests: tuple[Request, ...]
    lives: tuple[Life, ...]


def arrivals(
    *,
    seed: int,
    from_ms: int,
    to_ms: int,
    per_s: Callable[[int], float],
    per_s_max: float,
    tenants: Sequence[str] = ("",),
) -> list[Arrival]:
    """Return requests at random moments, whose rate at a moment is `per_s`, at most `per_s_max`."""
    rng = np.random.default_rng(seed)
    at, found = float(from_ms), list[Arrival]()
    while (at := at + rng.exponential(SECOND / per_s_max)) < to_ms:
        is_there = rng.random() * per_s_max < per_s(int(at))
        draws = rng.lognormal(0.0, LENGTH_SPREAD, 2)
        cached, is_aborted = rng.choice(CACHED_SHARES), bool(rng.random() < ABORTED_SHARE)
        tenant = tenants[int(rng.integers(len(tenants)))]
        if not is_there:
            continue
        tokens = min(TOKENS_MAX, 1 + int(INPUT_MEDIAN * draws[0]))
        found.append(
            Arrival(
                int(at),
                tokens,
                min(TOKENS_MAX, 1 + int(OUTPUT_MEDIAN * draws[1])),
                int(tokens * cached),
                is_aborted,
                tenant,
            )
        )
    return found


def serve(
    engine: Engine, sent: Sequence[Arrival], lives: Sequence[Life], *, name: str = "r"
) -> Load:
    """Return when the engine served each request; name: what request ids begin with."""
    found: list[Request] = []
    numbered = [(f"{name}{number}", one) for number, one in enumerate(sent)]
    for life, alive in enumerate(lives):
        free = [alive.up_ms] * engine.slots
        running: list[int] = []  # ends of requests in the batch
        for request_id, one in numbered:
            if not alive.up_ms <= one.at_ms < alive.end_ms:
                continue
            start = max(one.at_ms, free[0])
            if start >= alive.end_ms:
                found.append(_unserved(request_id, one, alive.end_ms, life))
                continue
            running = [end for end in running if end > start]
            served = _served(engine, request_id, one, start, len(running), alive)
            heapq.heapreplace(free, served.end_ms)
            running.append(served.end_ms)
            found.append(replace(served, life=life))
    found += [
        _unserved(request_id, one, one.at_ms, None)
        for request_id, one in numbered
        if not any(life.up_ms <= one.at_ms < life.end_ms for life in lives)
    ]
    return Load(engine, tuple(sorted(found, key=lambda one: one.arrival_ms)), tuple(lives))


def _served(
    engine: Engine, request_id: str, one: Arrival, start: int, others: int, alive: Life
) -> Request:
    computed = one.input_tokens - one.cached_tokens
    first = start + 1 + round(SECOND * computed / engine.prefill_tokens_per_s)
    inter_ms = SECOND * engine.inter_token_s * (1 + engine.slowdown * others)
    tokens = max(1, one.output_tokens // 2) if one.is_aborted else one.output_tokens
    end = first + math.ceil((tokens - 1) * inter_ms)
    status = "aborted" if one.is_aborted else "ok"
    if end >= alive.end_ms:  # the engine ends before
        end, status = alive.end_ms, "error"
        tokens = 0 if first >= end else 1 + int((end - first) // inter_ms)
    return Request(
        request_id, one.at_ms, start, first if tokens else None, end, one.input_tokens, tokens,
        one.cached_tokens, inter_ms, status, one.tenant, None,
    )  # fmt: skip


def _unserved(request_id: str, one: Arrival, end_ms: int, life: int | None) -> Request:
    return Request(
        request_id, one.at_ms, None, None, end_ms, one.input_tokens, 0, 0, 1.0, "error",
        one.tenant, life,
    )  # fmt: skip
