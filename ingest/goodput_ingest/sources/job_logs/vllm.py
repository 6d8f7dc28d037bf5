"""vLLM's periodic line (vllm/v1/metrics/loggers.py).

INFO 08-20 14:03:11 [loggers.py:123] Engine 000: Avg prompt throughput: 812.4 tokens/s, ... Running: 24 reqs, ...

Every ten seconds while there is work; silence is no fault. The stamp has no year. The lines become
metrics: rates and queue lengths, no step.
"""  # noqa: E501 -- the line as it is printed

import re
from collections.abc import Iterable
from typing import Any, ClassVar

from goodput_ingest.sources.job_logs.events import Event
from goodput_ingest.sources.job_logs.lines import Line
from goodput_ingest.sources.job_logs.moments import Moments

STATS = re.compile(
    r"\b(?P<month>\d\d)-(?P<day>\d\d) (?P<clock>\d\d:\d\d:\d\d(?:\.\d{1,6})?) \[[\w.]+:\d+\] "
    r"(?:Engine (?P<engine>\d{1,6}): )?Avg prompt throughput: (?P<prompt>[\d.]{1,20}) tokens/s, "
    r"Avg generation throughput: (?P<generation>[\d.]{1,20}) tokens/s, (?P<rest>.*)$"
)
REQUESTS = re.compile(r"(Running|Waiting): (\d{1,12}) reqs[,.]?")
CACHE = re.compile(r"GPU KV cache usage: ([\d.]{1,8})%")


class Vllm:
    """Throughput and queue of an engine, every ten seconds of work."""

    name: ClassVar[str] = "vllm"
    marks: ClassVar[re.Pattern[bytes]] = re.compile(
        rb"Avg generation throughput: [\d.]+ tokens/s|vLLM API server version"
    )
    hints: ClassVar[tuple[str, ...]] = ("Avg generation throughput:",)
    reports_durability: ClassVar[bool] = True  # there is nothing to keep

    def __init__(self) -> None:
        """Keep nothing: each line stands for itself."""

    def take(self, line: Line, moments: Moments) -> Iterable[Event] | None:
        """Return a metric of a line; truncated lines, which lack the queue, have none."""
        found = STATS.search(line.text)
        requests = dict(REQUESTS.findall(found["rest"])) if found else {}
        if found is None or len(requests) < 2:
            return None
        at = line.at
        if at is None:
            at = moments.without_year(int(found["month"]), int(found["day"]), found["clock"])
        extra: dict[str, Any] = {
            "engine": int(found["engine"] or 0),
            "prompt_tokens_per_s": _number(found["prompt"]),
            "generation_tokens_per_s": _number(found["generation"]),
            "running_requests": int(requests["Running"]),
            "waiting_requests": int(requests["Waiting"]),
        }
        if cache := CACHE.search(found["rest"]):
            percent = _number(cache[1])
            extra["kv_cache_ratio"] = None if percent is None else percent / 100
        kind = f"engine {extra['engine']}"  # engines of one server write at one moment
        return (Event("metric", at, kind=kind, extra=extra),)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
