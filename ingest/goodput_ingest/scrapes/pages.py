"""Metrics pages of one kind of exporter as rows of raw tables, for a file of them or a live one."""

import re
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from goodput_ingest.formats import files
from goodput_ingest.formats.parsed import Parsed
from goodput_ingest.formats.prometheus_text import exposition
from goodput_ingest.formats.prometheus_text.blocks import blocks
from goodput_ingest.formats.prometheus_text.series import MARK, KnownSeries
from goodput_ingest.scrapes import recorded
from goodput_ingest.source import Batch, ReadOptions, Reject
from goodput_queries.errors import IngestError

MARK_LINE: Final = re.compile(
    rb"^" + re.escape(MARK).encode() + rb"\S+(?:[ \t]+(?P<target>\S+))?[ \t]*$", re.MULTILINE
)


def with_instances(data: bytes, names: bytes) -> bytes:
    """Return the lines of scrapes with the target in front of them as their label `instance`.

    The series of two targets differ in nothing else. A series that has the label keeps it: a server
    that federates writes whose series it is.

    names: a pattern of the names of the metrics that are read
    """
    without_labels, with_labels = _patterns(names)
    marks = list(MARK_LINE.finditer(data))
    borders = [mark.end() for mark in marks] + [len(data)]
    found = [data[: borders[0]]]
    for mark, (start, end) in zip(marks, pairwise(borders), strict=True):
        text = data[start:end]
        if host := _host(mark["target"]):
            text = with_labels.sub(rb'\1{instance="%s",' % host, text)
            text = without_labels.sub(rb'\1{instance="%s"}' % host, text)
        found.append(text)
    return b"".join(found)


@cache
def _patterns(names: bytes) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    # both begin with text, for which Python searches faster than for the beginning of a line
    name = rb"(\n" + names + rb")"
    return (
        re.compile(name + rb"(?=[ \t])"),
        re.compile(name + rb'\{(?!(?:\w+="[^"\n]*",)*instance=)'),
    )


def _host(target: bytes | None) -> bytes:
    """Return host and port of a URL, less what would end a label; b"" where it names none."""
    try:
        host = urlsplit((target or b"").decode("utf-8", "replace")).netloc.rpartition("@")[2]
    except ValueError:
        return b""
    return re.sub(r'[\\"{}]', "", host).encode()


@dataclass(frozen=True)
class PageFormat:
    """What the pages of an exporter are, and how they become rows.

    metrics_of: whose metrics they are, in a message; example: a line of them
    names: pattern of the metrics that get the label of their target; b"": none needs it
    labels: to keep
    is_metric: whether a metric shows that a page is of this exporter
    table: that gets the rejects of a page without rows
    rows: of points, series and label sets, with the cluster and more that the source gives
    """

    metrics_of: str
    example: str
    names: bytes
    labels: Container[str]
    is_metric: Callable[[str], object]
    table: str
    rows: Callable[..., list[Parsed]]

    def recognises(self, head: bytes) -> bool:
        """Say whether at least half of the first lines are samples, some of this exporter."""
        return recorded.has_metric(head, self.is_metric)

    def with_targets(self, data: bytes) -> bytes:
        """Return the lines with the label of the target that was scraped."""
        return with_instances(data, self.names) if self.names else data

    def rows_of(
        self,
        found: exposition.Exposition,
        rejects: Sequence[Reject],
        *,
        taken_at: datetime | None,
        cluster: str | None,
        **given: Any,
    ) -> list[Parsed]:
        """Return the rows of raw tables that scrapes give, and these rejects.

        taken_at: when lines are of that carry no time of their own
        """
        points = found.points
        if points["ts"].null_count() and taken_at is not None:
            points = points.with_columns(points["ts"].fill_null(taken_at))
        rows = self.rows(points, found.series, found.label_sets, cluster=cluster, **given)
        if not rejects:
            return rows
        first, *others = rows or [Parsed(self.table, points.clear().select("ts"))]
        return [Parsed(first.table, first.rows, [*rejects, *first.rejects]), *others]

    def read(
        self, path: Path, options: ReadOptions, source: str, *said_by_name: str | None, **given: Any
    ) -> Iterator[Batch]:
        """Return the batches of a file of scrapes, block by block.

        said_by_name: what the file's name says beside a moment, which makes equal lines others

        Raises IngestError where the file is of another exporter, or where nothing says when a
        scrape was taken.
        """
        head = files.head(path)
        if head.strip() and not self.recognises(head):
            raise IngestError(
                f"{path}: these are not metrics of {self.metrics_of}; expected lines as "
                f"{self.example}."
            )
        return self._batches(path, options, source, *said_by_name, **given)

    def _batches(
        self, path: Path, options: ReadOptions, source: str, *said_by_name: str | None, **given: Any
    ) -> Iterator[Batch]:
        known, first_line = KnownSeries(self.labels), 1
        meaning = (options, recorded.moment_in(path.name), *filter(None, said_by_name))
        for block in blocks(path):
            if known.is_full:
                known = KnownSeries(self.labels)
            found = exposition.parse(self.with_targets(block.data), known, first_line=first_line)
            first_line += found.lines
            if block.damage:
                found.rejects.append(Reject(first_line, block.damage))
            rows = self.rows_of(
                found,
                found.rejects,
                taken_at=recorded.taken_at(path, options, found),
                cluster=options.cluster,
                **given,
            )
            for parsed in rows:
                yield parsed.batch(source=source, origin=str(path), digest=found.digest(*meaning))
