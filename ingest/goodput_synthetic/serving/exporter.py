"""The page `/metrics` of a made-up engine at a moment, as its product's exporter writes it."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import lru_cache

import numpy as np

from goodput_synthetic.serving.load import Load
from goodput_synthetic.serving.names import BUCKETS, LABELS, OF_REQUESTS, SERIES
from goodput_synthetic.serving.state import Lifetime, State

Labels = tuple[tuple[str, str], ...]


def page(load: Load, ms: int) -> str | None:
    """Return what the exporter answers at a moment; None while the engine is away or loads."""
    life = next((at for at, life in enumerate(load.lives) if life.up_ms <= ms < life.end_ms), None)
    if life is None:
        return None
    engine = load.engine
    state = _lifetime(load, life).at(ms)
    own = tuple((name, value.format(model=engine.model)) for name, value in LABELS[engine.product])
    named, lines = set[str](), list[str]()
    for kind, name, of, further in SERIES[engine.product, engine.release]:
        if name not in named:
            lines.append(f"# TYPE {name} {'histogram' if kind == 'sum' else kind}")
            named.add(name)
        labels = (*engine.labels, *own, *further)
        lines += _lines(kind, name, of, labels, state)
    return "\n".join(lines) + "\n"


def scrapes(loads: Sequence[Load], from_ms: int, to_ms: int, *, step_ms: int) -> str:
    """Return the pages of some engines at whole steps, each behind the line that says when."""
    return "".join(_pages(loads, from_ms, to_ms, step_ms))


def _pages(loads: Sequence[Load], from_ms: int, to_ms: int, step_ms: int) -> Iterator[str]:
    for ms in range(-(-from_ms // step_ms) * step_ms, to_ms, step_ms):
        moment = datetime.fromtimestamp(ms / 1000, UTC).isoformat().replace("+00:00", "Z")
        for load in loads:
            if text := page(load, ms):
                yield f"# scraped_at {moment} http://{load.engine.endpoint}/metrics\n{text}"


def _lines(kind: str, name: str, of: str, labels: Labels, state: State) -> Iterator[str]:
    numbers = {
        "one": 1.0,
        "none": 0.0,
        "requests_over": state.numbers["requests_ok"] + state.numbers["requests_aborted"],
        "requests_inflight": state.numbers["requests_running"] + state.numbers["requests_waiting"],
        **state.numbers,
    }
    if kind == "histogram":
        yield from _histogram(name, of, labels, state)
    else:
        yield _line(name + ("_sum" if kind == "sum" else ""), labels, numbers[of])


def _histogram(name: str, of: str, labels: Labels, state: State) -> Iterator[str]:
    values, counts = state.observed[of]
    bounds = BUCKETS.get(of, OF_REQUESTS)
    within = np.searchsorted(bounds, values)  # the first bucket that has the value
    up_to = np.bincount(within, weights=counts, minlength=len(bounds) + 1).cumsum()
    for le, count in zip((*bounds, "+Inf"), up_to, strict=True):
        yield _line(f"{name}_bucket", (*labels, ("le", str(le))), count)
    yield _line(f"{name}_count", labels, counts.sum())
    yield _line(f"{name}_sum", labels, float(np.dot(values, counts)))


def _line(name: str, labels: Labels, value: float) -> str:
    text = ",".join(f'{label}="{value}"' for label, value in labels)
    return f"{name}{{{text}}} {float(value)!r}" if text else f"{name} {float(value)!r}"


@lru_cache(maxsize=64)
def _lifetime(load: Load, life: int) -> Lifetime:
    return Lifetime(load, life)
