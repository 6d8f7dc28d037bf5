"""The series of one request: those that are read, rejects, and names of no exporter that is read.

Each series is counted once: seen = read + rejected + known to say nothing + of other metrics.
"""

import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
import numpy as np

from goodput_ingest.formats.json_text import json_lines
from goodput_ingest.formats.json_text.json_lines import EPOCH_S_MAX
from goodput_ingest.formats.parsed import TEXT_MAX_CHARS
from goodput_ingest.gpu_metrics import unread_names
from goodput_ingest.gpu_metrics.plan import RUNTIME
from goodput_ingest.prometheus_api.answer import LABELS_MAX, NAME, Series
from goodput_ingest.prometheus_api.recorded import READ

# what targets say of themselves, and Prometheus of scraping
SILENT: Final = re.compile("|".join((*RUNTIME, "node_", "scrape_", "up$")))
NAMES_MAX: Final = 1_000  # a hostile sender may make up names; more are counted without theirs
NAME_MAX_CHARS: Final = 200
TOO_MANY_LABELS: Final = f"it has more than {LABELS_MAX} labels"
NO_TIME: Final = "a sample has no valid time"
UNREAD_OF_GPUS: Final = "metrics of GPUs by an exporter that is not read: "


class Sent(msgspec.Struct, array_like=True):
    """Points (epoch ms, value) of one series. target: whose points of one time are one scrape."""

    target: str
    labels: dict[str, str]
    points: list[tuple[int, float]]

    def series(self) -> Series:
        """Return it as the answer to a query has it: times growing, no time twice."""
        times_ms, values = zip(*sorted(dict(self.points).items()), strict=True)
        return Series(self.labels, np.array(times_ms, np.int64), np.array(values, np.float64))


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
        known = [(at, value) for at, value in points if not math.isnan(value)]
        if len(labels) > LABELS_MAX:
            self.reject(TOO_MANY_LABELS, labels)
        elif not all(0 <= at < EPOCH_S_MAX * 1000 for at, _ in known):
            self.reject(NO_TIME, labels)  # all of it: one series is not both read and rejected
        else:
            self.seen += 1
            self.silent += not known
            cut = {name: text[:TEXT_MAX_CHARS] for name, text in labels.items()}
            self.series += [Sent(target, cut, known)] if known else []

    def has_no_reader(self, labels: Mapping[str, str]) -> bool:
        """Count a series whose metric is of no exporter that is read; False for others."""
        name = labels.get(NAME, "")
        if any(is_read(name) for is_read in READ):
            return False
        self.seen += 1
        if SILENT.match(name):
            self.silent += 1
        else:
            count(self.others, name[:NAME_MAX_CHARS], 1)
        return True

    def reject(self, reason: str, labels: Mapping[str, str]) -> None:
        """Add a series that is not read, with the reason."""
        self.seen += 1
        content = json_lines.printable(json.dumps(dict(labels)), TEXT_MAX_CHARS)
        self.rejects.append((reason, content))


class Counts:
    """What all requests of a process had together."""

    def __init__(self) -> None:
        self.others: dict[str, int] = {}
        self.seen = self.rejected = self.silent = 0

    def add(self, arrived: Arrived) -> None:
        """Count a request that was loaded."""
        self.seen += arrived.seen
        self.rejected += len(arrived.rejects)
        self.silent += arrived.silent
        for name, series in arrived.others.items():
            count(self.others, name, series)

    def sentence(self, shown: int = 3) -> str | None:
        """Return what is not read, by name; None where everything is or says nothing."""
        if not self.others and not self.rejected:
            return None
        names = sorted(filter(None, self.others))
        of = f" ({_named(names, len(self.others), shown)})" if names else ""
        if of_gpus := unread_names(names):
            of += f"; {UNREAD_OF_GPUS}{_named(of_gpus, len(of_gpus), shown)}"
        unread = sum(self.others.values())
        read = self.seen - self.rejected - self.silent - unread
        return (
            f"of {self.seen:,} series in requests {read:,} were read, {self.rejected:,} rejected, "
            f"{self.silent:,} are known to say nothing, {unread:,} are of no exporter that is read"
            f"{of}"
        )


def _named(names: list[str], count: int, shown: int) -> str:
    """Return the first of so many names and how many more there are."""
    more = f" and {count - shown} more" if count > shown else ""
    return ", ".join(json_lines.printable(name, NAME_MAX_CHARS) for name in names[:shown]) + more


def count(others: dict[str, int], name: str, series: int) -> None:
    """Count series of a metric, without its name where there are many already."""
    known = name if name in others or len(others) < NAMES_MAX else ""
    others[known] = others.get(known, 0) + series
