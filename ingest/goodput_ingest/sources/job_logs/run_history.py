"""Steps of a run from the metrics that it logged to W&B, MLflow or TensorBoard.

An entry has a moment and the number of the step that was just done: the steps between two entries
share the time between them. How long the first took is taken from the second. Such a history knows
no saves and, but for MLflow, no end; a pause of the job lengthens the step that it fell into.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any, Final

import polars as pl

from goodput_ingest.formats import files
from goodput_ingest.formats.json_text import event_lines, json_lines
from goodput_ingest.formats.json_text.event_lines import EXTRA_MAX_CHARS, SCHEMA
from goodput_ingest.formats.json_text.json_lines import printable
from goodput_ingest.source import Batch, ReadOptions, Reject
from goodput_ingest.sources.job_logs.events import Event
from goodput_ingest.sources.job_logs.progress import Progress

ROWS_PER_BATCH: Final = 100_000
STEP_MAX: Final = 2**53
RUN_ID_MAX_CHARS: Final = 200
LOSS: Final = re.compile(
    r"(?:(?:train(?:ing|er)?|lm)[/_ .-])*loss(?:[/_](?:step|train))?", re.IGNORECASE
)
NOT_TRAINING: Final = re.compile(
    r"(?:^|[/_])(?:eval\w*|val|valid\w*|test\w*|system)(?:[/_]|$)", re.IGNORECASE
)


@dataclass(frozen=True)
class Point:
    """An entry: number of the last step done, its moment (naive UTC), the training loss if any."""

    step: int
    at: datetime
    loss: float | None = None


@dataclass(frozen=True)
class History:
    """Where a run's history comes from, and under which run and user its events are stored."""

    source: str
    path: Path
    options: ReadOptions
    run_id: str
    user: str = ""

    def batches(
        self,
        points: Sequence[Point],
        others: Iterable[Event],
        rejects: Sequence[Reject],
        digests: Iterable[str],
        start: datetime | None = None,
    ) -> Iterator[Batch]:
        """Yield `raw.job_events`: the steps of the points, and these other events.

        start: of the run, naive UTC; None: not known. digests: of what was read.
        """
        extra = {"user": self.user} if self.user else {}
        began = [] if start is None else [Event("job.start", start, extra=extra)]
        events = iter([*began, *others, *steps(points, start)])
        meaning = (self.run_id, self.options.cluster, self.options.node)
        digest = files.digest_of(" ".join(digests), *meaning)
        ordinal = 0
        while (rows := [self._row(event) for event in islice(events, ROWS_PER_BATCH)]) or rejects:
            frame = pl.DataFrame(rows, schema=SCHEMA, orient="row")
            origin = str(self.path)
            yield Batch(
                "job_events", frame, self.source, origin, f"{digest}-{ordinal}", tuple(rejects)
            )
            rejects, ordinal = (), ordinal + 1

    def _row(self, event: Event) -> event_lines.Row:
        extra = json_lines.dumped({"log": self.source, **event.extra})
        return event_lines.row(
            source=self.source,
            cluster=self.options.cluster,
            run_id=printable(self.run_id, RUN_ID_MAX_CHARS),
            host=self.options.node,
            ts=event.at,
            event=event.event,
            step=event.step,
            dur_s=event.dur_s,
            loss=event.loss,
            kind=event.kind,
            msg=event.msg,
            reports_durability=False,
            extra=extra if len(extra) <= EXTRA_MAX_CHARS else None,
        )


def steps(points: Sequence[Point], start: datetime | None) -> Iterator[Event]:
    """Yield the steps up to each point, in order of time; the loss is of the last of them."""
    ordered = sorted(points, key=lambda point: point.at)
    progress = Progress()
    for number, point in enumerate(ordered):
        after = ordered[number + 1] if number == 0 and len(ordered) > 1 else None
        if after is not None and after.step > point.step > 0 and after.at > point.at:
            interval = after.step - point.step
            length = (after.at - point.at) / interval
            room = timedelta.max if start is None else max(point.at - start, timedelta(0))
            # a run that went on did not do so many steps before: one is sure
            progress.log_interval = interval if length * min(interval, point.step) <= room else 1
            found = progress.mean(point.step, min(length, room).total_seconds(), point.at)
        else:
            found = progress.point(point.step, point.at)
        yield from found[:-1]
        yield from (replace(event, loss=point.loss) for event in found[-1:])


def is_loss(name: str) -> bool:
    """Say whether a metric is the training loss by its name."""
    return LOSS.fullmatch(name) is not None


def of_steps(names: Iterable[str]) -> str | None:
    """Return the metric whose entries are steps: the training loss, else the first of training."""
    known = sorted(names, key=lambda name: (not is_loss(name), name))
    return next((name for name in known if not NOT_TRAINING.search(name)), None)


def summary(name: str, points: Sequence[Point]) -> list[Event]:
    """Return one event of a metric whose entries are no steps: its name and their number."""
    if not points:
        return []
    extra: dict[str, Any] = {"metric": printable(name, RUN_ID_MAX_CHARS), "entries": len(points)}
    last = max(point.at for point in points)
    return [Event("metric", last, kind=extra["metric"], extra=extra)]
