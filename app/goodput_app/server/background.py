"""What a server does when something was loaded: build, count settled hours, drop what is old."""

from __future__ import annotations

import contextlib
import logging
import time
from typing import TYPE_CHECKING

from msgspec import structs

from goodput_app.settings import settings
from goodput_ingest.live import status as live_status
from goodput_ingest.live.status import Status
from goodput_queries.counted_hours import HOUR_MS, count_settled_hours
from goodput_queries.errors import GoodputError, TooMuchDroppedError, UnbuiltError
from goodput_queries.evidence.plausible import utc_now
from goodput_queries.evidence.retention import Retention, drop_old

if TYPE_CHECKING:
    from goodput_queries.storage.store import LocalStore

log = logging.getLogger(__name__)

RETENTION_STATUS = ("retention", "goodput.toml")  # source and origin among the live sources
LAKE_EVERY_S = 30.0  # looking whether something was loaded into a lake is a request a table
AGAIN_S = 3_600.0  # after a refusal: finding out what is too old passes over all readings


class Upkeep:
    """Keeps the ledger of one database up to date and its evidence as long as the settings say."""

    def __init__(self, store: LocalStore) -> None:
        self._store = store
        self._prune_from_s = 0.0  # by the steady clock
        self._build_from_s = 0.0
        self._is_counted = False
        self.is_built = False  # the last run brought the ledger up to date

    def run(self) -> None:
        """Build what was loaded, count settled hours, drop what is too old for the settings."""
        if time.monotonic() < self._build_from_s:
            return
        try:
            is_same = self._store.build().is_empty()
        except GoodputError:
            self.is_built = False
            raise
        self.is_built = True
        if self._store.lake_binding.lake is not None:
            self._build_from_s = time.monotonic() + LAKE_EVERY_S
            self._publish()
        if not (is_same and self._is_counted):
            self._count()
        if is_same or time.monotonic() < self._prune_from_s:
            return
        with contextlib.suppress(UnbuiltError):  # something came in between: the next time
            self._prune()

    def _publish(self) -> None:
        """Write closed hours to the lake; what fails is tried again."""
        try:
            self._store.lake_binding.publish()
        except GoodputError as error:
            log.error("closed hours were not published: %s", error)

    def _count(self) -> None:
        """Add the hours that have settled to the counters of `/metrics`."""
        given = settings().metrics
        count_settled_hours(
            self._store, settle_ms=given.settle_h * HOUR_MS, label_values=given.label_values
        )
        self._is_counted = True

    def _prune(self) -> None:
        """Drop what is too old; a refusal is listed among the live sources until it is settled."""
        now = utc_now()
        status = live_status.read(self._store, Status(*RETENTION_STATUS, now, interval_s=AGAIN_S))
        try:
            drop_old(self._store, Retention(**structs.asdict(settings().retention)))
        except TooMuchDroppedError as error:
            self._prune_from_s = time.monotonic() + AGAIN_S
            if not status.failures:
                log.warning("%s", error)
            live_status.write(self._store, [status.failed(now, str(error))])
        else:
            if status.failures:
                live_status.write(self._store, [status.answered(now)])
