"""A small made-up site that serves one model: two vLLM pods on a node of four GPUs.

It has a cluster of its own, Kubernetes without a scheduler's accounting: GPU readings with the
label of the pod, scrapes of the engines, the log of their requests. One pod gets most of the
requests, so that it has a queue at noon while the other has room; it is restarted once and loads
its model again, and at night nobody asks.
"""

import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from pathlib import Path
from typing import Final

from goodput_synthetic.fleet.written.events import write_gzip
from goodput_synthetic.serving.exporter import scrapes
from goodput_synthetic.serving.load import Engine, Life, Load, arrivals, serve
from goodput_synthetic.serving.request_log import request_log_lines

CLUSTER: Final = "inference"
NODE, MODEL, NAMESPACE = "serve-a01", "llama-3.1-70b", "llm"
GPU_MODEL: Final = "NVIDIA H100 80GB HBM3"
GPUS_PER_POD: Final = 2
SHARES: Final = (0.8, 0.2)  # of the requests, by pod
PER_S_MAX: Final = 0.2
NIGHT: Final = (1, 5)  # hours of the day without a request
RESTART_HOUR, LOAD_S = 10, 240
SCRAPE_MS, READING_MS = 120_000, 60_000
READING: Final = (
    "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_PROF_SM_ACTIVE",
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_FB_USED",
)  # fmt: skip
IDLE: Final = (0.0, 0.0, 0.0, 0.0, 125.0, 72_000.0)
LOADING: Final = (2.0, 0.03, 0.01, 0.0, 150.0, 30_000.0)


def write(folder: Path, *, end: datetime, hours: int, seed: int) -> None:
    """Write the files of the site for so many hours until `end`, and the recipe."""
    folder.mkdir(parents=True, exist_ok=True)
    begin_ms = _ms(end - timedelta(hours=hours))
    span = begin_ms, _ms(end)
    loads = [_load(pod, span, seed) for pod in range(len(SHARES))]
    write_gzip(folder / "gpus.prom.gz", _readings(loads, span))
    write_gzip(folder / "engines.prom.gz", [scrapes(loads, *span, step_ms=SCRAPE_MS)])
    (folder / "requests.jsonl").write_text(request_log_lines(loads), "utf-8", newline="\n")
    for name in ("rates.csv", "demo.toml"):
        (folder / name).write_bytes((files("goodput_synthetic.serving") / name).read_bytes())


def _load(pod: int, span: tuple[int, int], seed: int) -> Load:
    labels = (("namespace", NAMESPACE), ("node", NODE), ("pod", f"chat-{pod}"))
    engine = Engine(
        "vllm",
        MODEL,
        f"10.8.0.{10 + pod}:8000",
        labels,
        slots=4,
        prefill_tokens_per_s=2_500.0,
        inter_token_s=0.06,
        kv_tokens=16_000,
    )
    sent = arrivals(
        seed=seed + pod, from_ms=span[0], to_ms=span[1], per_s_max=PER_S_MAX * SHARES[pod],
        per_s=lambda ms: SHARES[pod] * _per_s(ms), tenants=("assistant", "search", "support"),
    )  # fmt: skip
    lives = [Life(*span)]
    restart = next((ms for ms in range(*span, 3_600_000) if _hour(ms) == RESTART_HOUR), None)
    if pod == 0 and restart is not None and restart > span[0]:
        lives = [Life(span[0], restart), Life(restart + LOAD_S * 1000, span[1])]
    return serve(engine, sent, lives, name=f"chat-{pod}-")


def _per_s(ms: int) -> float:
    """Return the requests a second of the site: most at 13 h, none in the night."""
    hour = ms / 3_600_000 % 24
    if NIGHT[0] <= hour < NIGHT[1]:
        return 0.0
    return PER_S_MAX * (0.25 + 0.75 * max(0.0, math.cos((hour - 13) / 24 * 2 * math.pi)))


def _readings(loads: list[Load], span: tuple[int, int]) -> Iterator[str]:
    """Yield the pages of the GPU exporter: how long requests ran since the reading before."""
    busy = [_busy(load, span) for load in loads]
    for at, ms in enumerate(range(span[0], span[1], READING_MS)):
        yield f"# scraped_at {_text(ms)} http://{NODE}:9400/metrics\n"
        for pod, load in enumerate(loads):
            is_up = any(life.up_ms <= ms < life.end_ms for life in load.lives)
            share = min(1.0, busy[pod][at])
            values = _values(share) if is_up and share else IDLE if is_up else LOADING
            for gpu in range(pod * GPUS_PER_POD, (pod + 1) * GPUS_PER_POD):
                labels = (
                    f'gpu="{gpu}",UUID="GPU-5e7e0000-0000-4000-8000-00000000000{gpu}",'
                    f'Hostname="{NODE}",modelName="{GPU_MODEL}",namespace="{NAMESPACE}",'
                    f'pod="chat-{pod}",container="vllm"'
                )
                for name, value in zip(READING, values, strict=True):
                    yield f"{name}{{{labels}}} {value:g}\n"


def _values(share: float) -> tuple[float, ...]:
    return (
        *(round(100 * share), share, 0.6 * share, 0.25 * share),
        *(125 + 420 * share, IDLE[-1]),
    )


def _busy(load: Load, span: tuple[int, int]) -> list[float]:
    """Return for each reading the share of the time before it in which a request ran."""
    readings = (span[1] - span[0]) // READING_MS
    found = [0.0] * readings
    until = 0  # up to where the time of earlier requests is counted
    served = [one for one in load.requests if one.start_ms is not None]
    for one in sorted(served, key=lambda one: one.start_ms or 0):
        begin, until_now = max(one.start_ms or 0, until), one.end_ms
        until = max(until, until_now)
        while begin < until_now:
            at = (begin - span[0]) // READING_MS
            stop = min(until_now, span[0] + (at + 1) * READING_MS)
            if at + 1 < readings:
                found[at + 1] += (stop - begin) / READING_MS
            begin = stop
    return found


def _hour(ms: int) -> int:
    return ms // 3_600_000 % 24


def _ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


def _text(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat().replace("+00:00", "Z")
