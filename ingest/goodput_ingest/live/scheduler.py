"""Polls live sources, each in a thread of its own, so that none waits for another.

The loop loads a poll batch by batch, so memory holds one batch a source. It retries a failing
source with back-off. A poll starts at the watermark that the store has of its source, so an outage
on either side leaves no gap that the source can backfill, and no duplicates.

    collection = Collection(collectors, Shared("goodput.duckdb"))
    collection.start()
    ...
    collection.stop(timeout_s=5)
"""

import contextlib
import logging
import random
import re
import threading
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import cast

from goodput_ingest.live import status
from goodput_ingest.live.config import Collector
from goodput_ingest.live.status import Status
from goodput_ingest.live.store_lease import Stores
from goodput_ingest.live.tail_contents import as_settings
from goodput_ingest.run.plausible_time import PlausibleTime
from goodput_ingest.run.unexpected import CAUGHT, unexpected
from goodput_ingest.source import Batch
from goodput_queries.errors import GoodputError
from goodput_queries.evidence.plausible import EARLIEST, utc_now

log = logging.getLogger(__name__)

BACKOFF_MAX_S = 60.0  # what has no past, as a scrape, loses what comes before it is asked again
JITTER = (
    0.5  # of a wait after a failure: many collectors must not ask a server that is back at once
)
DOUBLINGS_MAX = 16
CLOCK_JUMP_S = 5.0
PROGRESS_S = 30.0  # between messages of a poll that loads the past
NUMBER = re.compile(r"\d+(?:\.\d+)?")


@dataclass(frozen=True)
class Clock:
    """The wall clock, naive UTC, and the monotonic clock in seconds."""

    now: Callable[[], datetime] = utc_now
    steady_s: Callable[[], float] = time.monotonic


@dataclass
class Outcome:
    """The result of a poll: rows that it loaded, and a sentence where it failed after them."""

    collector: Collector
    rows: int = 0
    rows_new: int = 0
    rejects: int = 0
    error: str | None = None


class Collection:
    """Polls live sources at their intervals, each in a thread of its own."""

    def __init__(
        self,
        collectors: Sequence[Collector],
        stores: Stores,
        clock: Clock | None = None,
        earliest: datetime = EARLIEST,
    ) -> None:
        self._clock = clock or Clock()
        plausible = PlausibleTime(earliest, self._clock.now)
        self._pollers = [_Poller(one, stores, self._clock, plausible) for one in collectors]
        self._is_over = threading.Event()
        self._threads = [
            threading.Thread(
                target=poller.run, args=(self._is_over,), name=f"collect {one.label}", daemon=True
            )
            for one, poller in zip(collectors, self._pollers, strict=True)
        ]

    def start(self) -> None:
        """Start polling."""
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Start no further poll; polls in progress continue, see `stop`."""
        self._is_over.set()

    def stop(self, timeout_s: float) -> list[str]:
        """Stop after the batches in progress; return the sources that did not stop in time.

        Their threads end with the process; the next process reads again what they had not loaded.
        """
        self.end()
        deadline = self._clock.steady_s() + timeout_s
        for thread in self._threads:
            thread.join(max(0.0, deadline - self._clock.steady_s()))
        return [thread.name for thread in self._threads if thread.is_alive()]

    def ask_once(self) -> list[Outcome]:
        """Poll every source once, in parallel; return the outcomes in the order of the sources."""
        outcomes: dict[int, Outcome] = {}

        fatal: list[MemoryError] = []

        def ask(number: int, poller: _Poller) -> None:
            try:
                outcomes[number] = poller.ask(self._is_over)
            except MemoryError as error:
                fatal.append(error)
            poller.close()

        threads = [
            threading.Thread(target=ask, args=(number, poller), daemon=True)
            for number, poller in enumerate(self._pollers)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if fatal:
            raise fatal[0]
        return [outcomes[number] for number in range(len(threads))]


class _Poller:
    """Polls one source in a loop and keeps its status."""

    def __init__(
        self, collector: Collector, stores: Stores, clock: Clock, plausible: PlausibleTime
    ) -> None:
        self._collector = collector
        self._stores = stores
        self._clock = clock
        self._plausible = plausible
        self._status = Status(
            collector.reads, collector.origin, clock.now(), collector.source.interval_s
        )
        self._is_known = False  # whether the store was asked what an earlier process left
        self._status_error = ""  # the last error of writing the status: logged once
        self._clock_offset_s: float | None = None  # wall clock less monotonic clock

    def run(self, is_over: threading.Event) -> None:
        """Poll until `is_over` is set."""
        due_s = self._clock.steady_s()
        try:
            while not is_over.is_set():
                self.ask(is_over)
                due_s = next_due_s(
                    due_s, self._clock.steady_s(), self._status.interval_s, self._status.failures
                )
                is_over.wait(max(0.0, due_s - self._clock.steady_s()))
        finally:
            self.close()

    def ask(self, is_over: threading.Event) -> Outcome:
        """Poll once and load the answer; a failure of any kind becomes the outcome's error."""
        now = self._clock.now()
        self._look_at_the_clock(now)
        outcome = Outcome(self._collector)
        try:
            self._load(now, outcome, is_over)
        except GoodputError as error:
            outcome.error = as_settings(str(error))
        except MemoryError:  # no source can be asked on as if nothing had happened
            outcome.error = f"{self._collector.label}: out of memory; it is not polled again."
            self._note(now, outcome)
            raise
        except CAUGHT as error:
            outcome.error = str(unexpected(self._collector.label, error))
        if not is_over.is_set():  # else it may have been cut short
            self._note(now, outcome)
        return outcome

    def close(self) -> None:
        """Close the source's resources, if it has any."""
        close = getattr(self._collector.source, "close", None)
        if close is not None:
            with contextlib.suppress(Exception):  # it ends in any case
                close()

    def _load(self, now: datetime, outcome: Outcome, is_over: threading.Event) -> None:
        collector = self._collector
        with self._stores.lease() as store:
            if not self._is_known:
                self._status = status.read(store, self._status)
                status.write(store, [self._status])  # one that hangs at once is seen too
                self._is_known = True
            reached = status.reached(store, collector.reads, now)
        # a source knows that a batch was taken when it is asked for the next
        said_s, until = self._clock.steady_s(), None
        poll = cast("Generator[Batch]", collector.source.poll(reached, now))
        with contextlib.closing(poll):
            for batch in poll:
                checked = self._plausible.checked(batch)
                with self._stores.lease() as store:
                    loaded = store.load(checked, is_polled=True)
                outcome.rows += loaded.rows
                outcome.rows_new += loaded.rows_new
                outcome.rejects += loaded.rejects
                until = batch.rows["ts"].max() if "ts" in batch.rows else until
                if self._clock.steady_s() - said_s >= PROGRESS_S:
                    said_s = self._clock.steady_s()
                    said = "" if until is None else f", up to {until!s} UTC"
                    log.warning("%s: loading, %d rows%s", collector.label, outcome.rows, said)
                if is_over.is_set():
                    return

    def _note(self, now: datetime, outcome: Outcome) -> None:
        """Write the status of the source, and log a change of it."""
        label, before = self._collector.label, self._status
        if outcome.error is None:
            self._status = before.answered(now, getattr(self._collector.source, "skipped", None))
            if before.failures:
                log.warning("%s answers again after %d failures", label, before.failures)
        else:
            self._status = before.failed(now, outcome.error)
            if _words(self._status.error) != _words(before.error):
                log.warning("%s: %s", label, outcome.error)
        if not self._is_known:  # it would replace what the store knows
            return
        try:
            with self._stores.lease() as store:
                status.write(store, [self._status])
            self._status_error = ""
        except Exception as error:
            if str(error) != self._status_error:
                self._status_error = str(error)
                log.warning("%s: its status cannot be stored: %s", label, error)

    def _look_at_the_clock(self, now: datetime) -> None:
        """Log a jump of the wall clock: times of readings before and after it do not match."""
        offset_s = now.replace(tzinfo=UTC).timestamp() - self._clock.steady_s()
        if self._clock_offset_s is not None and abs(offset_s - self._clock_offset_s) > CLOCK_JUMP_S:
            log.warning(
                "%s: this machine's clock jumped by %+.0f s",
                self._collector.label,
                offset_s - self._clock_offset_s,
            )
        self._clock_offset_s = offset_s


def _words(sentence: str | None) -> str:
    """Return a sentence without its numbers: sentences that differ in a time only are equal."""
    return NUMBER.sub("", sentence or "")


def next_due_s(
    due_s: float,
    now_s: float,
    interval_s: float,
    failures: int,
    chance: Callable[[], float] = random.random,
) -> float:
    """Return the time of the next poll, on the monotonic clock, after one that was due at `due_s`.

    After a success in the rhythm of the interval; what was missed meanwhile is left out. After a
    failure twice as late each time, up to a minute (or the interval), less up to a half by chance.
    """
    if failures == 0:
        missed = max(0.0, now_s - due_s) // interval_s
        return due_s + (missed + 1) * interval_s
    doubled_s = interval_s * 2.0 ** min(failures - 1, DOUBLINGS_MAX)
    wait_s = min(doubled_s, max(interval_s, BACKOFF_MAX_S))
    return now_s + wait_s * (1 - JITTER * chance())
