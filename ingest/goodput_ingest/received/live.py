"""Loads requests that senders posted, as the collector loads what it polls.

A sender splits a scrape over requests, while a row has all that was read of a GPU at a time and the
first row of a time stays. So samples wait until the first request of their scrape is 20 s old, and
are loaded with those of all requests since. Prometheus sends what is left of a scrape after 5 s,
and tries again after 5 more.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import ClassVar, Final

from goodput_ingest.gpu_metrics import Memory
from goodput_ingest.prometheus_api.answer import Series
from goodput_ingest.prometheus_api.batches import batches
from goodput_ingest.prometheus_api.bulk import epoch_ms
from goodput_ingest.prometheus_api.recorded import parsed_rows
from goodput_ingest.prometheus_api.replicas import without_doubles
from goodput_ingest.received.arrived import Arrived, Counts, Sent
from goodput_ingest.received.reply import Reply
from goodput_ingest.received.spool import Spool
from goodput_ingest.source import Batch, Reject
from goodput_queries.errors import IngestError

SETTLE_MS: Final = 20_000
SAMPLES_MAX: Final = 200_000  # of requests that are loaded at once
TAKEN_MAX: Final = 200_000  # scrapes that are remembered
SILENCE_MS: Final = 600_000
LATE: Final = "samples came twice, or over 20 s after others of their scrape, which had been loaded"

Scrape = tuple[str, int]  # target and time


class Received:
    """Requests of one protocol; a subclass reads them."""

    name: ClassVar[str]
    path: ClassVar[str]

    interval_s = 15.0
    body_max_bytes = 16 << 20  # of a request, unpacked

    def __init__(self, spool: Spool, *, cluster: str | None = None) -> None:
        """Take where requests wait, and whose GPUs and hosts they are of; None: their nodes say."""
        self.spool = spool
        self.cluster = cluster
        self._memory = Memory()
        self._counts = Counts()
        self._read: dict[Path, Arrived] = {}
        self._taken: dict[Scrape, None] = {}  # scrapes that were loaded, the latest last
        self._latest_ms: int | None = None

    @property
    def origin(self) -> str:
        """Return the path that senders post to."""
        return self.path

    @property
    def skipped(self) -> str | None:
        """Return what was not read since the process began."""
        sentence = self._counts.sentence()
        return sentence and f"{self.path}: {sentence}"

    def receive(self, headers: Mapping[str, str], body: bytes) -> Reply:
        """Keep a request until it is loaded; raises RefusedError, or FullError: send it again.

        headers: names in lower case
        """
        raise NotImplementedError

    def refusal(self, headers: Mapping[str, str], status: int, sentence: str) -> Reply:
        """Return the answer to a request that is not taken."""
        raise NotImplementedError

    def probe(self) -> list[str]:
        """Return nothing: what arrives is seen by the server alone."""
        return []

    def poll(self, reached: Mapping[str, datetime], now: datetime) -> Iterator[Batch]:  # noqa: ARG002 -- requests that wait are what is new
        """Yield what requests have whose scrapes are whole; raises IngestError in a long silence.

        A request is removed once its batches were loaded.
        """
        waiting = self.spool.waiting()
        now_ms = epoch_ms(now)
        # what an earlier process left waits again for what its senders could not send meanwhile
        ripe_ms = now_ms - SETTLE_MS if now_ms - SETTLE_MS >= self.spool.since_ms else 0
        ripe = [path for path, at_ms in waiting if at_ms <= ripe_ms]
        arrived_ms = dict(waiting)
        while ripe:
            part = self._part(ripe)
            waiting = waiting[len(part) :]
            until_ms = arrived_ms[part[-1]] + SETTLE_MS
            yield from self._batches(part, [p for p, at_ms in waiting if at_ms <= until_ms])
            ripe = ripe[len(part) :]
        if arrived_ms:
            self._latest_ms = max(arrived_ms.values())
        elif self._latest_ms is not None and now_ms - self._latest_ms > SILENCE_MS:
            minutes = (now_ms - self._latest_ms) // 60_000
            raise IngestError(f"{self.path}: nothing has arrived for {minutes} min.")

    def _part(self, ripe: Sequence[Path]) -> list[Path]:
        """Return the first requests with some hundred thousand samples, and at least one."""
        part: list[Path] = []
        samples = 0
        for path in ripe:
            part.append(path)
            samples += sum(len(one.points) for one in self._arrived(path).series)
            if samples >= SAMPLES_MAX:
                break
        return part

    def _arrived(self, path: Path) -> Arrived:
        if path not in self._read:
            self._read[path] = self.spool.read(path)
        return self._read[path]

    def _batches(self, part: Sequence[Path], later: Sequence[Path]) -> Iterator[Batch]:
        """Yield the samples of requests with those of their scrapes in later ones, then go on."""
        whole = [self._arrived(path) for path in part]
        scrapes = {
            (one.target, at) for found in whole for one in found.series for at, _ in one.points
        }
        late = sum(scrape in self._taken for scrape in scrapes)
        scrapes -= self._taken.keys()
        taken, left = _split([one for found in whole for one in found.series], scrapes)
        rests: dict[Path, list[Sent]] = {}
        for path in later:
            more, rests[path] = _split(self._arrived(path).series, scrapes)
            taken += more
        rejects = [Reject(None, *reject) for found in whole for reject in found.rejects]
        if late:
            samples = sum(len(one.points) for one in left)
            rejects.append(Reject(None, LATE, f"{samples} samples of {late} scrapes"))
        series = without_doubles(one.series() for one in taken)
        parsed = parsed_rows(series, source=self.name, cluster=self.cluster, memory=self._memory)
        digest = _digest(series, [path.name for path in part], self.cluster)
        yield from batches(parsed, rejects, self.name, self.path, digest)
        for path, rest in rests.items():
            self._read[path].series = rest
        for path in part:
            self._counts.add(self._read.pop(path))
        self._taken.update(dict.fromkeys(scrapes))
        for scrape in list(islice(self._taken, max(0, len(self._taken) - TAKEN_MAX))):
            del self._taken[scrape]
        self.spool.remove(part)


def _split(series: Sequence[Sent], scrapes: set[Scrape]) -> tuple[list[Sent], list[Sent]]:
    """Return the points of these scrapes, and all others."""
    found: tuple[list[Sent], list[Sent]] = ([], [])
    for one in series:
        for some, is_wanted in zip(found, (True, False), strict=True):
            points = [p for p in one.points if ((one.target, p[0]) in scrapes) is is_wanted]
            if points:
                some.append(Sent(one.target, one.labels, points))
    return found


def _digest(series: Sequence[Series], *meaning: object) -> str:
    found = hashlib.blake2b(repr(meaning).encode(), digest_size=16)
    for one in series:
        found.update(repr(sorted(one.labels.items())).encode("utf-8", "replace"))
        found.update(one.times_ms.tobytes() + one.values.tobytes())
    return found.hexdigest()
