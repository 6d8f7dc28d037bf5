"""The series of one request: those that are read, rejects, and names of no exporter that is read.

Each series is counted once: seen = read + rejected + known to say nothing + of other metrics.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
import numpy as np

from goodput_ingest.formats.json_text import json_lines
from goodput_ingest.formats.json_text.json_lines import EPOCH_S_MAX
from goodput_ingest.formats.parsed import TEXT_MAX_CHARS
from goodput_ingest.gpu_metrics.plan import RUNTIME
from goodput_ingest.prometheus_api.answer import LABELS_MAX, NAME, Series
from goodput_ingest.prometheus_api.recorded import READ

SILENT: Final = (*RUNTIME, "node_", "scrape_")  # what targets and Prometheus say of scraping
UP: Final = "up"
NAMES_MAX: Final = 1_000  # a hostile sender may make up names; more are counted without theirs
NAME_MAX_CHARS: Final = 200
TOO_MANY_LABELS: Final = f"it has more than {LABELS_MAX} labels"
NO_TIME: Final = "a sample has no valid time"


class Sent(msgspec.Struct, array_like=True):
    """Samples of one series in a request. target: whose samples of one time belong together."""

    target: str
    labels: dict[str, str]
    times_ms: list[int]
    values: list[float]

    def series(self) -> Series:
        """Return it as the answer to a query has it: times growing, no time twice."""
        times_ms, first = np.unique(np.array(self.times_ms, np.int64), return_index=True)
        return Series(self.labels, times_ms, np.array(self.values, np.float64)[first])


class Arrived(msgspec.Struct, array_like=True):
    """What one request has. rejects: reason and labels; others: series by name of their metric."""

    series: list[Sent] = []
    rejects: list[tuple[str, str]] = []
    others: dict[str, int] = {}
    seen: int = 0
    silent: int = 0

    def add(self, target: str, labels: dict[str, str], points: Iterable[tuple[int, float]]) -> None:
        """Add a series with its points (epoch ms, value); NaN says that the series has ended."""
        if self.has_no_reader(labels):
            return
        good = [(at, value) for at, value in points if value == value]  # noqa: PLR0124 -- NaN
        known = [(at, value) for at, value in good if 0 <= at < EPOCH_S_MAX * 1000]
        if len(labels) > LABELS_MAX:
            self.reject(TOO_MANY_LABELS, labels)
        elif len(known) < len(good):  # all of it: one series is not both read and rejected
            self.reject(NO_TIME, labels)
        elif not known:
            self.seen += 1
            self.silent += 1
        else:
            self.seen += 1
            cut = {name: text[:TEXT_MAX_CHARS] for name, text in labels.items()}
            self.series.append(Sent(target, cut, *map(list, zip(*known, strict=True))))

    def has_no_reader(self, labels: Mapping[str, str]) -> bool:
        """Count a series whose metric is of no exporter that is read; False for others."""
        name = labels.get(NAME, "")
        if any(is_read(name) for is_read in READ):
            return False
        self.seen += 1
        if name == UP or name.startswith(SILENT):
            self.silent += 1
            return True
        known = name[:NAME_MAX_CHARS]
        if known not in self.others and len(self.others) >= NAMES_MAX:
            known = ""
        self.others[known] = self.others.get(known, 0) + 1
        return True

    def reject(self, reason: str, labels: Mapping[str, str]) -> None:
        """Add a series that is not read, with the reason."""
        self.seen += 1
        content = json_lines.printable(json.dumps(dict(labels)), TEXT_MAX_CHARS)
        self.rejects.append((reason, content))


class Counts:
    """What all requests of a process had together."""

    def __init__(self) -> None:
        self.others: Counter[str] = Counter()
        self.seen = self.read = self.rejected = self.silent = 0

    def add(self, arrived: Arrived) -> None:
        """Count a request that was loaded."""
        self.seen += arrived.seen
        self.read += len(arrived.series)
        self.rejected += len(arrived.rejects)
        self.silent += arrived.silent
        for name, series in arrived.others.items():
            known = name if name in self.others or len(self.others) < NAMES_MAX else ""
            self.others[known] += series

    def sentence(self, shown: int = 3) -> str | None:
        """Return what is not read, by name; None where everything is or says nothing."""
        if not self.others and not self.rejected:
            return None
        names = [json_lines.printable(name, NAME_MAX_CHARS) for name in sorted(self.others) if name]
        more = f" and {len(self.others) - shown} more" if len(self.others) > shown else ""
        unread = f" ({', '.join(names[:shown])}{more})" if names else ""
        return (
            f"of {self.seen:,} series in requests {self.read:,} were read, {self.rejected:,} "
            f"rejected, {self.silent:,} are known to say nothing, {self.others.total():,} are of "
            f"no exporter that is read{unread}"
        )
