"""What one part of a file or one poll leaves for the next: decisions, and things still going on.

A reader makes one `Memory` per file or live source and hands it to each call, in order of time.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple, TypeVar

import polars as pl

T = TypeVar("T")

INTERVAL_UNKNOWN: Final = timedelta(seconds=60)  # Prometheus' default scrape_interval is 1 min
HOLE_INTERVALS: Final = 3  # a longer silence is a hole: nobody saw what happened in it

OwnerKey = tuple[str, str, str, str, str]  # GPU, instance, kind, owner, container


class Layout(NamedTuple):
    """How a GPU is cut: (instance, profile) of its parts, since when, and when it was seen last."""

    parts: frozenset[tuple[str, str]]
    since: datetime
    seen_at: datetime


@dataclass
class Memory:
    """State between parts of one origin; all moments are naive UTC.

    scales: (node, raw name) to scale, where the name leaves percent or ratio open; a reader may
        fill it with what its settings say.
    interval: median time between readings of a GPU.
    gpus: the last facts of a GPU, so that only changes become rows.
    seen: (GPU, instance) to its latest reading.
    owners: label of the last hour, to the first and the last reading of its last stretch.
    layouts: GPU to its MIG instances, while it has any.
    latches: kind of event and GPU to the code that its gauge held last, 0 for none, and when.
    made: what was made of frames last, by what made it.
    """

    scales: dict[tuple[str, str], float] = field(default_factory=dict)
    interval: timedelta | None = None
    gpus: dict[str, dict[str, object]] = field(default_factory=dict)
    seen: dict[tuple[str, str], datetime] = field(default_factory=dict)
    owners: dict[OwnerKey, tuple[datetime, datetime]] = field(default_factory=dict)
    layouts: dict[str, Layout] = field(default_factory=dict)
    latches: defaultdict[str, dict[str, tuple[int, datetime]]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    made: dict[Callable[..., Any], tuple[tuple[pl.DataFrame, ...], Any]] = field(
        default_factory=dict
    )

    def once(self, make: Callable[..., T], *frames: pl.DataFrame, **more: str | None) -> T:
        """Return `make` of these frames; for the same frames as last time the cached result.

        more: is the same for all of one origin
        """
        of, found = self.made.get(make, ((), None))
        if len(of) != len(frames) or any(a is not b for a, b in zip(of, frames, strict=True)):
            found = make(*frames, **more)
            self.made[make] = frames, found
        result: T = found
        return result

    def seen_at(self, gpu_uuid: str) -> datetime | None:
        """Return the latest reading of a GPU or any instance of it."""
        return max((at for (uuid, _), at in self.seen.items() if uuid == gpu_uuid), default=None)

    @property
    def hole(self) -> timedelta:
        """Time without a reading after which nothing that was going on still counts as going on."""
        return HOLE_INTERVALS * (self.interval or INTERVAL_UNKNOWN)
