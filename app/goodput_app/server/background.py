"""What a server does when something was loaded: build, count settled hours, drop what is old."""

import contextlib
import logging
import math
import time
from collections.abc import Callable, Sequence

from msgspec import structs

from goodput_app.server.viewers import Viewers
from goodput_app.settings import settings
from goodput_ingest.live import status as live_status
from goodput_ingest.live.config import Collector
from goodput_ingest.live.status import Status
from goodput_queries.counted_hours import HOUR_MS, count_settled_hours
from goodput_queries.database import LocalStore
from goodput_queries.errors import GoodputError, TooMuchDroppedError, UnbuiltError
from goodput_queries.evidence.plausible import utc_now
from goodput_queries.evidence.retention import Retention, drop_old
from goodput_queries.ledger_build.lake import Lake

log = logging.getLogger(__name__)

RETENTION_STATUS = ("retention", "goodput.toml")  # source and origin among the live sources
REST_RATIO = 30.0  # after a build none begins for so many times as long, while no page is open
REST_RATIO_POLLED = 9.0  # ... or so that each poll is built, where that is so many times as long
REST_RATIO_WATCHED = 4.0  # while one is: as long as the build and what was evaluated of it took
REST_MAX_S = 60.0  # findings are to be known within two polls, however long a build takes
LAKE_EVERY_S = 30.0  # looking whether something was loaded into a lake is a request a table
SHOW_EVERY_S = 15.0  # what polls wrote, where there is nothing to build or no build succeeds
AGAIN_S = 3_600.0  # after a refusal: finding out what is too old passes over all readings


class Upkeep:
    """Keeps the ledger of one database up to date and its evidence as long as the settings say."""

    def __init__(
        self,
        store: LocalStore,
        viewers: Viewers | None = None,
        steady_s: Callable[[], float] = time.monotonic,
        sources: Sequence[Collector] = (),
    ) -> None:
        self._store = store
        self._viewers = viewers or Viewers()
        self._steady_s = steady_s
        self._poll_s = min((one.source.interval_s for one in sources), default=math.inf)
        self._prune_from_s = 0.0  # by the steady clock
        self._built_at_s = -math.inf
        self._build_s = 0.0
        self._evaluated_s = 0.0  # by the store, when the last build ended
        self._shown_at_s = -math.inf
        self._is_counted = False
        self.is_built = False  # the last run brought the ledger up to date

    def run(self) -> None:
        """Build what was loaded, count settled hours, drop what is too old for the settings."""
        started_s = self._steady_s()
        if started_s < self._built_at_s + self._rest_s():
            return
        is_same = False
        try:
            is_same = self._store.build().is_empty()
        except GoodputError:
            self.is_built = False
            raise
        finally:
            self._built_at_s = self._steady_s()
            self._build_s = 0.0 if is_same else self._built_at_s - started_s
            self._evaluated_s = self._store.evaluated_s
            self._show()
        self.is_built = True
        if (lake := self._store.lake) is not None:
            self._publish(lake)
        if not (is_same and self._is_counted):
            self._count()
        if is_same or self._steady_s() < self._prune_from_s:
            return
        with contextlib.suppress(UnbuiltError):  # something came in between: the next time
            self._prune()

    def _show(self) -> None:
        """Let answers show what polls wrote, now and then: builds let them anyway."""
        if self._built_at_s >= self._shown_at_s + SHOW_EVERY_S:
            self._store.show_all()
            self._shown_at_s = self._built_at_s

    def _rest_s(self) -> float:
        """Return how long after a build nothing is built."""
        if self._viewers.pages:
            caused_s = self._build_s + self._store.evaluated_s - self._evaluated_s
            rest_s = REST_RATIO_WATCHED * caused_s
        else:
            polled_s = max(REST_RATIO_POLLED * self._build_s, self._poll_s / 2)
            rest_s = min(REST_RATIO * self._build_s, polled_s)
        least_s = LAKE_EVERY_S if self._store.lake is not None else 0.0
        return max(least_s, min(rest_s, REST_MAX_S))

    def _publish(self, lake: Lake) -> None:
        """Write closed hours to the lake; what fails is tried again."""
        try:
            lake.publish()
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
            self._prune_from_s = self._steady_s() + AGAIN_S
            if not status.failures:
                log.warning("%s", error)
            live_status.write(self._store, [status.failed(now, str(error))])
        else:
            if status.failures:
                live_status.write(self._store, [status.answered(now)])
