"""What a source is: settings as fields, one method that yields. To read before adding one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

from goodput_queries.batch import Batch, Reject

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path
    from zoneinfo import ZoneInfo

__all__ = ["Batch", "ReadOptions", "Reject", "Source"]


@dataclass(frozen=True)
class ReadOptions:
    """What a file does not say of itself and the person who reads it in knows.

    cluster: which cluster it speaks of; None leaves it to be found through the node.
    zone: the zone of times that carry none; None refuses such times rather than guess.
    observed_at: when a snapshot (sinfo, scontrol) was taken, naive UTC; None: not known.
    node: whose kernel log it is where the lines do not say (dmesg); None refuses such lines.
    """

    cluster: str | None = None
    zone: ZoneInfo | None = None
    observed_at: datetime | None = None
    node: str | None = None


@runtime_checkable
class Source(Protocol):
    """A recorded source: one file in its native format.

    `recognises` looks at the first bytes (already decompressed) and says whether this is its
    format; it judges by content, the name is a hint at most. `extract` yields batches: bad rows
    ride along as rejects with their line, a file that is not this format raises IngestError.
    """

    name: ClassVar[str]

    def __init__(self, path: Path, options: ReadOptions) -> None:
        """Take the file and what it does not say of itself."""

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:
        """Say whether the file looks like this source's format."""

    def extract(self) -> Iterator[Batch]:
        """Yield the file's rows, part by part."""
