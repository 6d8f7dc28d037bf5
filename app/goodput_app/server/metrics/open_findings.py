"""Open findings for `/metrics`, evaluated beside the scrapes: a large fleet's take seconds."""

import logging
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

from goodput_app.server.metrics.exemplars import add_exemplars
from goodput_app.server.metrics.families import Samples
from goodput_queries.database import Store
from goodput_queries.errors import GoodputError
from goodput_queries.scope import Scope

log = logging.getLogger(__name__)

REST_S = 300.0  # between two evaluations
REST_SHARE = 20  # or as many times as the last one took
FIRST_WAIT_S = 0.05  # small databases answer within it
WINDOW_MS = 24 * 3_600_000
_OPEN = """
    select findings.cluster, rule, findings.severity, finding_key, team, gpu_ms, categories
    from marts.findings as findings
    inner join reference.finding_rules using (rule)
    where is_open and state in ('open', 'acknowledged')
    order by gpu_ms desc nulls last, finding_key
"""


class OpenFindings:
    """Open findings, at most as old as the rest between two evaluations."""

    def __init__(self, store: Store, *, first_wait_s: float = FIRST_WAIT_S) -> None:
        self._store = store
        self._first_wait_s = first_wait_s
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="goodput-metrics")
        self._lock = threading.Lock()
        self._running: Future[None] | None = None
        self._answer: tuple[float, list[dict[str, Any]]] | None = None
        self._due_s = 0.0  # by the steady clock

    def add_to(self, samples: Samples, end_ms: int) -> None:
        """Add what is known, also of an earlier state of the database; evaluate again when due."""
        with self._lock:
            is_idle = self._running is None or self._running.done()
            if is_idle and time.monotonic() >= self._due_s:
                self._due_s = time.monotonic() + REST_S
                self._running = self._pool.submit(self._evaluate, end_ms)
            running = self._running
        if self._answer is None and running is not None:
            wait([running], self._first_wait_s)
        if self._answer is not None:
            at_s, rows = self._answer
            samples.add("goodput_findings_timestamp_seconds", [({}, at_s)])
            labels = ("cluster", "rule", "severity")
            samples.add(
                "goodput_findings_open", [({key: row[key] for key in labels}, 1) for row in rows]
            )
            add_exemplars(samples, rows, at_s)

    def _evaluate(self, end_ms: int) -> None:
        began_s = time.monotonic()
        scope = Scope(from_ms=end_ms - WINDOW_MS, to_ms=end_ms)
        try:
            self._answer = (time.time(), self._store.read(_OPEN, scope=scope).to_dicts())
        except GoodputError as error:  # being closed, or damaged, which pages say
            log.info("findings for /metrics were not evaluated: %s", error)
        took_s = time.monotonic() - began_s
        self._due_s = time.monotonic() + max(REST_S, REST_SHARE * took_s)
