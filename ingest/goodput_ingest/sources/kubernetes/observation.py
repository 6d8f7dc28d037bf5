"""An observation: series of kube-state-metrics by name, with the times of observation."""

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Self

import numpy as np
from numpy.typing import NDArray

from goodput_ingest.gpu_metrics import is_gpu_metric
from goodput_ingest.prometheus_api.answer import Series

PREFIX = "kube_"
_SERIES = csv.DictReader((files(__package__) / "series.csv").read_text("utf-8").splitlines())
METRICS = {row["series"]: row["missing"] for row in _SERIES}
"""The series that are read, as kube-state-metrics 2.20 names them; all others are left alone."""
NEEDED = {name: why for name, why in METRICS.items() if why}
"""What is wrong without some of them."""

INTERVAL_UNKNOWN_MS = 60_000
INTERVAL_MAX_MS = 3_600_000  # what is further apart is no state that was watched in between
HOLE_INTERVALS = 2.5  # a longer silence of a series that should be there is an end, or a hole


@dataclass
class Observation:
    """The series of one time range by name.

    is_continued: an earlier observation covers everything that ended before this one starts.
    """

    is_continued: bool = False
    by_name: dict[str, list[Series]] = field(default_factory=dict)
    gpu_series: list[Series] = field(default_factory=list)
    moments_ms: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))

    @classmethod
    def of(cls, series: Iterable[Series], *, is_continued: bool = False) -> Self:
        """Return an observation of the series; those of GPU exporters map pods to GPUs."""
        found = cls(is_continued)
        for one in series:
            if not len(one.times_ms):
                continue
            if one.name in METRICS:
                found.by_name.setdefault(one.name, []).append(one)
            elif is_gpu_metric(one.name):
                found.gpu_series.append(one)
        times = [one.times_ms for group in found.by_name.values() for one in group]
        if times:
            found.moments_ms = np.unique(np.concatenate(times))
        return found

    def named(self, name: str) -> Sequence[Series]:
        """Return the series of a metric."""
        return self.by_name.get(name, ())

    def now(self, name: str) -> Iterator[Series]:
        """Yield those series of a metric whose last value is not 0: how states are printed."""
        return (one for one in self.named(name) if one.values[-1] != 0)

    @property
    def interval_ms(self) -> int:
        """Return the usual time between two readings of one series, at most an hour."""
        steps = [np.diff(one.times_ms) for group in self.by_name.values() for one in group]
        steps = [some for some in steps if len(some)]
        if not steps:
            return INTERVAL_UNKNOWN_MS
        return min(int(np.median(np.concatenate(steps))), INTERVAL_MAX_MS)

    @property
    def hole_ms(self) -> int:
        """Return the silence after which a series has ended."""
        return round(HOLE_INTERVALS * self.interval_ms)

    def stretches(self) -> list[tuple[int, int]]:
        """Return from when to when kube-state-metrics was read without a hole."""
        if not len(self.moments_ms):
            return []
        cuts = np.flatnonzero(np.diff(self.moments_ms) > self.hole_ms)
        starts = [int(self.moments_ms[0]), *(int(self.moments_ms[cut + 1]) for cut in cuts)]
        ends = [*(int(self.moments_ms[cut]) for cut in cuts), int(self.moments_ms[-1])]
        return list(zip(starts, ends, strict=True))

    def has_ended(self, last_seen_ms: int) -> bool:
        """Say whether others were read after it long enough for it to be gone.

        Where nothing at all was read then, the server was away, and nothing has ended.
        """
        later = self.moments_ms[self.moments_ms > last_seen_ms]
        return (
            len(later) > 0
            and int(later[-1]) - last_seen_ms > self.hole_ms
            and (int(later[0]) - last_seen_ms <= self.hole_ms)
        )


def label(one: Series, name: str) -> str:
    """Return the exporter's value of a name; '' where it has none.

    Where Prometheus may not overwrite its own label of that name it puts `exported_` before it.
    """
    return one.labels.get(f"exported_{name}") or one.labels.get(name, "")
