"""Pushes what `/metrics` shows by OTLP over HTTP, in the background of `goodput serve`.

A failure is logged once and is listed among the live sources until a push is taken, so that
`/metrics`, the page Data, `goodput doctor` and a finding show it.
"""

import gzip
import logging
import socket
import threading
import time
import uuid
from contextlib import AbstractContextManager
from dataclasses import replace

from goodput_app.distribution import version
from goodput_app.server.metrics.exposition import Metrics
from goodput_app.server.metrics.otlp import Request
from goodput_ingest.live import status as live_status
from goodput_ingest.live.status import Status
from goodput_ingest.received.otlp import PROTOBUF, messages
from goodput_messages import http_post
from goodput_messages.otlp_settings import OtlpSettings
from goodput_messages.retries import NotSentError, back_off_s
from goodput_messages.schedule import in_background
from goodput_queries.database import LocalStore
from goodput_queries.errors import GoodputError
from goodput_queries.evidence.plausible import utc_now

log = logging.getLogger(__name__)

STATUS_SOURCE = "otlp-push"  # among the live sources; its origin is the server


class Pusher:
    """Pushes the metrics of a database to one server."""

    def __init__(self, store: LocalStore, metrics: Metrics, to: OtlpSettings) -> None:
        self._store = store
        self._metrics = metrics
        self._to = to
        self._request = Request(resource(to, store.path))
        self._status = live_status.read(
            store, Status(STATUS_SOURCE, to.origin, utc_now(), interval_s=float(to.every_s))
        )

    def run(self, is_over: threading.Event) -> None:
        """Push until it is over; no error ends it."""
        wait_s = 0.0
        while not is_over.wait(wait_s):
            try:
                wait_s = self.look()
            except Exception as error:
                if is_over.is_set():
                    return  # the database is closed under it
                wait_s = max(self._to.every_s, back_off_s(self._status.failures, 0))
                log.error("metrics: %s", error, exc_info=not isinstance(error, GoodputError))

    def look(self) -> float:
        """Push once; return the seconds until the next time."""
        try:
            self.push()
        except GoodputError as error:
            if not self._status.failures:
                log.warning("metrics are not pushed: %s", error)
            asked_s = error.wait_s if isinstance(error, NotSentError) else 0.0
            wait_s = max(self._to.every_s, back_off_s(self._status.failures, asked_s))
            self._keep(self._status.failed(utc_now(), str(error)))
            return wait_s
        if self._status.failures:
            log.warning("metrics are pushed to %s again.", self._to.origin)
            now = utc_now()
            self._keep(replace(self._status.answered(now), retired_at=now))
        return self._to.every_s

    def push(self) -> None:
        """Push what `/metrics` would show now; raises GoodputError where it is not taken."""
        body = self._request.of(self._metrics.samples(), time.time_ns())
        headers = {"Content-Type": PROTOBUF, "Content-Encoding": "gzip"}
        to = self._to.endpoint()
        http_post.post_as_is(gzip.compress(body), self._to.sent_headers() | headers, to)

    def _keep(self, status: Status) -> None:
        self._status = status
        live_status.write(self._store, [status])


def resource(to: OtlpSettings, database: object) -> dict[str, str]:
    """Return the attributes of the process: the same for the same database after a restart."""
    instance = uuid.uuid5(uuid.NAMESPACE_URL, f"goodput://{socket.gethostname()}/{database}")
    own = {
        "service.name": "goodput",
        "service.version": version(),
        "service.instance.id": str(instance),
    }
    return own | to.attributes


def probe(to: OtlpSettings) -> str:
    """Return the server that answers; raises GoodputError where none does or packages lack."""
    messages()
    return http_post.probe(to.endpoint())


def pushing(
    store: LocalStore, metrics: Metrics, to: OtlpSettings | None
) -> AbstractContextManager[None]:
    """Push metrics in the background of a block, where the settings say where to."""
    work = None if to is None else Pusher(store, metrics, to).run
    return in_background(store, work, "metrics by OTLP", "no metric is pushed.")
