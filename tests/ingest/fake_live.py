"""A live source that does as a test says, and the loop around it."""

import contextlib
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import ClassVar

import polars as pl

from goodput_ingest.live.config import Collector
from goodput_ingest.live.scheduler import Clock, Collection
from goodput_ingest.live.store_lease import Held
from goodput_ingest.source import Batch

NOON = datetime(2026, 11, 20, 12)  # noqa: DTZ001 -- naive UTC
PATIENCE_S = 30.0


def at(second):
    return NOON + timedelta(seconds=second)


def batch(origin, seconds, *, source="fake"):
    """Return readings of one GPU, one at each second; the digest is that of the content."""
    rows = pl.DataFrame({
        "source": source, "gpu_uuid": f"GPU-{origin}", "gpu_instance": "",
        "ts": [at(second) for second in seconds], "power_w": [float(second) for second in seconds],
    })  # fmt: skip
    return Batch("gpu_samples", rows, source, origin, f"{origin} {list(seconds)}")


@dataclass
class Hands:
    """What a test does with a source: make it fail, make it hang, wait for its polls."""

    failing: Exception | None = None
    gate: threading.Event | None = None
    polled: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    reached: list[Mapping[str, datetime]] = field(default_factory=list)
    is_closed: bool = False
    last_second: int = 2**62  # there is nothing after it

    def wait_for_polls(self, count):
        """Wait until so many more polls have ended."""
        for _ in range(count):
            assert self.polled.acquire(timeout=PATIENCE_S)


@dataclass(frozen=True)
class Fake:
    """A source that has a reading a second since noon and gives what the store has not."""

    name: ClassVar[str] = "fake"

    origin: str = "a"
    interval_s: float = 0.01
    hands: Hands = field(default_factory=Hands)
    per_batch: int = 10

    def poll(self, reached, now):
        """Yield what is later than five seconds before `reached`."""
        self.hands.reached.append(reached)
        try:
            if self.hands.gate is not None:
                self.hands.gate.wait(PATIENCE_S)
            if self.hands.failing is not None:
                raise self.hands.failing
            first = 0
            if self.origin in reached:
                first = max(0, int((reached[self.origin] - NOON).total_seconds()) - 5)
            until = min(int((now - NOON).total_seconds()), self.hands.last_second)
            for start in range(first, until, self.per_batch):
                yield batch(self.origin, range(start, min(start + self.per_batch, until)))
        finally:
            self.hands.polled.release()

    def probe(self):
        """Find nothing."""
        return []

    def close(self):
        """Note that it was let go."""
        self.hands.is_closed = True


def collector(source):
    return Collector(source, source.name)


@dataclass
class SetClock:
    """A clock that stands until the test sets it."""

    second: float = 60.0

    def clock(self):
        """Return it as the loop takes it."""
        return Clock(lambda: at(self.second))


@contextlib.contextmanager
def running(store, clock, *sources):
    collection = Collection([collector(one) for one in sources], Held(store), clock)
    collection.start()
    try:
        yield collection
    finally:
        for one in sources:
            if one.hands.gate is not None:
                one.hands.gate.set()
        assert collection.stop(PATIENCE_S) == []


def seconds_of(store, origin="a"):
    """Return the seconds of the readings in the store; a double shows twice."""
    rows = store.read(
        "select epoch(ts - $1)::bigint from raw.gpu_samples where gpu_uuid = $2 order by 1",
        [NOON, f"GPU-{origin}"],
    )
    return rows.to_series().to_list()


def reached(store):
    """Return how far the store has come, by origin, as the collect loop says it."""
    sql = "select origin, max(window_end_at) from state.ingested where window_end_at is not null"
    return dict(store.read(f"{sql} group by origin").rows())


def add(path, text):
    """Write more into a file that is followed; return it."""
    with path.open("a") as file:
        file.write(text)
    return path


def follow(store, source, now, since=None):
    """Poll once, load all; return the rows that were read."""
    return sum(store.load(batch).rows for batch in source.poll(since or {}, now))


def status_of(store, origin="a"):
    rows = store.read("select * from state.source_status where origin = $1", [origin])
    return rows.row(0, named=True)


def ask(store, clock, *sources):
    """Poll each source once, as a new process; return the errors."""
    collection = Collection([collector(one) for one in sources], Held(store), clock)
    return [outcome.error for outcome in collection.ask_once()]
