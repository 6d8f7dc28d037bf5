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
from pathlib import Path

from google.protobuf.message import DecodeError

from goodput_app.distribution import version
from goodput_app.server.metrics.exposition import Metrics
from goodput_app.server.metrics.otlp import Request
from goodput_app.text.units import count
from goodput_ingest.live import status as live_status
from goodput_ingest.live.status import Status
from goodput_ingest.received.otlp import PROTOBUF, messages
from goodput_messages import http_post
from goodput_messages.http_post import SAID_MAX_CHARS
from goodput_messages.otlp_settings import OtlpSettings
from goodput_messages.printable import printable
from goodput_messages.retries import NotSentError, back_off_s
from goodput_messages.schedule import in_background
from goodput_queries.database import LocalStore
from goodput_queries.errors import GoodputError
from goodput_queries.evidence.plausible import utc_now

log = logging.getLogger(__name__)

ASKED_MAX_S = 3_600.0  # of what a server asks to wait
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
        """Push until it is over; an error is logged once and never ends it."""
        wait_s, said = 0.0, ""
        while not is_over.wait(wait_s):
            try:
                wait_s, said = self.look(), ""
            except Exception as error:
                if is_over.is_set():
                    return  # the database is closed under it
                wait_s = max(self._to.every_s, back_off_s(self._status.failures, 0))
                if str(error) != said:
                    said = str(error)
                    is_stated = isinstance(error, GoodputError)
                    log.error("metrics by OTLP: %s", said, exc_info=not is_stated)

    def look(self) -> float:
        """Push once; return the seconds until the next time."""
        wait_s: float = self._to.every_s
        try:
            failure = self.push()
        except GoodputError as error:
            failure = str(error)
            asked_s = min(error.wait_s, ASKED_MAX_S) if isinstance(error, NotSentError) else 0.0
            wait_s = max(wait_s, back_off_s(self._status.failures, asked_s))
        now = utc_now()
        if failure is not None:
            if not self._status.failures:
                log.warning("metrics by OTLP: %s", failure)
            self._keep(self._status.failed(now, failure))
        elif self._status.failures:
            log.warning("metrics are pushed to %s again.", self._to.origin)
            self._keep(replace(self._status.answered(now), retired_at=now))
        return wait_s

    def push(self) -> str | None:
        """Push what `/metrics` would show now; return what the server rejected of it, if anything.

        Raises GoodputError where it is not taken.
        """
        body = self._request.of(self._metrics.samples(), time.time_ns())
        headers = {"Content-Type": PROTOBUF, "Content-Encoding": "gzip"}
        to = self._to.endpoint()
        sent = self._to.sent_headers() | headers
        answer = http_post.post_as_is(gzip.compress(body), sent, to, reads_answer=True)
        return _rejected(answer, to.origin)

    def _keep(self, status: Status) -> None:
        self._status = status
        live_status.write(self._store, [status])


def _rejected(answer: bytes, origin: str) -> str | None:
    """Return how much of an accepted push was rejected, as a sentence; None: all was taken."""
    try:
        partial = messages().ExportMetricsServiceResponse.FromString(answer).partial_success
    except DecodeError:  # what answers is no receiver, or answers in another form
        return None
    if not partial.rejected_data_points:
        return None
    why = printable(partial.error_message)[:SAID_MAX_CHARS]
    return f"{origin} rejected {count(partial.rejected_data_points, 'data point')} ({why})."


def resource(to: OtlpSettings, database: str) -> dict[str, str]:
    """Return the attributes of the process: the same for the same database after a restart."""
    path = Path(database).resolve()
    instance = uuid.uuid5(uuid.NAMESPACE_URL, f"goodput://{socket.gethostname()}{path}")
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
