"""The protocols of sources, recorded and live: settings as fields, a method that yields batches."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import ClassVar, Protocol, runtime_checkable
from zoneinfo import ZoneInfo

from goodput_ingest.formats.files import Part
from goodput_queries.evidence.batch import Batch, Reject
from goodput_queries.evidence.plausible import EARLIEST

__all__ = [
    "Batch",
    "ContinuedSource",
    "LiveSource",
    "ReadOptions",
    "RecordedFile",
    "Reject",
    "Source",
]


@dataclass(frozen=True)
class ReadOptions:
    """Options of an ingest for facts that a file does not contain.

    cluster: the cluster of its rows; None: found through the node.
    zone: the zone of times that carry none; None refuses such times rather than guess.
    observed_at: when a snapshot (sinfo, scontrol) was taken, naive UTC; None: not known.
    node: whose kernel or job log it is where the lines do not say; None refuses those of dmesg.
    run_id: which run a job's log is of where it does not say; None leaves it to the file's name.
    earliest: what is observed before it is rejected, naive UTC.
    """

    cluster: str | None = None
    zone: ZoneInfo | None = None
    observed_at: datetime | None = None
    node: str | None = None
    run_id: str | None = None
    earliest: datetime = EARLIEST


@runtime_checkable
class Source(Protocol):
    """A recorded source: one file in its native format.

    `recognises` looks at the first bytes (already decompressed) and says whether this is its
    format; it judges by content, the name is a hint at most. `extract` yields batches: bad rows
    ride along as rejects with their line, a file that is not this format raises IngestError.
    A class attribute `is_followed`, true, says that its files grow by lines: `[[collect]]` with a
    `folder` then follows them.
    """

    name: ClassVar[str]

    def __init__(self, path: Path, options: ReadOptions) -> None:
        """Take the file and the options."""

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:
        """Say whether the file looks like this source's format."""

    def extract(self) -> Iterator[Batch]:
        """Yield the file's rows, part by part."""


class RecordedFile:
    """A file and the options of its ingest, as most recorded sources take them."""

    def __init__(self, path: Path, options: ReadOptions) -> None:
        """Take the file and the options."""
        self.path = path
        self.options = options


@runtime_checkable
class ContinuedSource(Source, Protocol):
    """A source with a stateful parser: it keeps state from line to line.

    A followed file is read by one object of the class, part after part as it grows, a copy of it
    a part: the copy replaces it once the rows are in the store.

    needs_beginning: what it keeps may go back to the first line, so that after a restart the file
    is read from there again. Else a little before the new lines is enough.
    """

    needs_beginning: ClassVar[bool]

    def read(self, part: Part) -> Iterator[Batch]:
        """Yield the rows of the next lines; a part without any row is no error."""


@runtime_checkable
class LiveSource(Protocol):
    """A source that is polled: a scrape, a query, a command, a folder whose files grow.

    Settings are fields of a frozen dataclass, read from one `[[collect]]` table of `goodput.toml`.
    What is read is parsed by the code of the recorded format. `poll` returns soon (it has its own
    timeouts), yields bounded batches and holds nothing else; a failure raises IngestError with one
    sentence, after which the loop waits longer and asks again. `reached` is how far the store has
    come, by origin (the latest moment of what was loaded from it); a poll begins a little before
    it, so that an outage of ours leaves no hole and repeated rows change nothing.
    """

    name: ClassVar[str]

    @property
    def origin(self) -> str:
        """Return the name of the polled origin, under which the store keeps its watermark."""

    @property
    def interval_s(self) -> float:
        """Return the poll interval."""

    def poll(self, reached: Mapping[str, datetime], now: datetime) -> Iterator[Batch]:
        """Yield what is new; `now` is naive UTC."""

    def probe(self) -> list[str]:
        """Poll once without loading; return findings for `goodput doctor`, raise IngestError."""
