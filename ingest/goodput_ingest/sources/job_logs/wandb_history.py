"""The history of a W&B run: JSON lines (`wandb-history.jsonl`, `scan_history`), its CSV or its file.

{"_step": 10, "_timestamp": 1795805154.03, "_runtime": 0.73, "train/loss": 3, "train/global_step": 10}

`_step` counts calls of `log`; a trainer's own number of the step goes before it. Host, user, GPUs and
Slurm job of the run are in its own file, else in `wandb-metadata.json` of its folder.
"""  # noqa: E501 -- the line as it is written

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar, Final

from goodput_ingest.formats import csv_table, files
from goodput_ingest.formats.json_text import json_lines
from goodput_ingest.formats.json_text.json_lines import FieldError
from goodput_ingest.source import Batch, RecordedFile, Reject
from goodput_ingest.sources.job_logs.events import Event
from goodput_ingest.sources.job_logs.run_history import STEP_MAX, History, Point, is_loss
from goodput_ingest.sources.job_logs.run_name import ENDINGS, wandb_run_of
from goodput_ingest.sources.job_logs.wandb_run import HEAD, WandbRun
from goodput_ingest.sources.job_logs.world_size import WORLD_SIZE
from goodput_queries.errors import IngestError

STEPS: Final = ("train/global_step", "trainer/global_step", "global_step", "_step")
METADATA: Final = "wandb-metadata.json"
JOB_ID: Final = re.compile(r"\d{1,18}")
GPUS_MAX: Final = 1024
RUNTIME_MAX_S: Final = 10 * 366 * 86_400


class WandbHistory(RecordedFile):
    """A file with the entries of one run."""

    name: ClassVar[str] = "wandb-history"

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:  # noqa: ARG004 -- judged by content alone
        """Say whether entries have a step and a time as W&B names them."""
        if head.startswith(HEAD):
            return True
        if {"_step", "_timestamp"} <= set(csv_table.header_names(head)):
            return True
        lines = json_lines.objects(head)
        # with `_wandb` it is the summary of a run, the last entry again
        marks = [
            (b'"_step"' in line and b'"_timestamp"' in line, b'"_wandb"' in line) for line in lines
        ]
        return json_lines.are_most(head) and (True, False) in marks

    def extract(self) -> Iterator[Batch]:
        """Yield `raw.job_events`; raises IngestError where no line is an entry."""
        if not self.recognises(self.path, head := files.head(self.path)):
            raise IngestError(f"{self.path}: no line has a _step and a _timestamp, as of W&B.")
        if head.startswith(HEAD):
            yield from self._of_run_file()
            return
        entries = _Entries()
        rejects: list[Reject] = []
        digests: list[str] = []
        header: list[str] = []
        is_csv = "_step" in csv_table.header_names(head)

        def take(line: str) -> None:
            if is_csv and not header:
                header.extend(csv_table.header_names(line.encode()))
            else:
                entries.add(_entry(header, line) if is_csv else json_lines.record(line))

        for part in files.parts(self.path):
            digests.append(files.digest(part))
            rejects += json_lines.each_line(part, take)
        yield from self._batches(entries, [], rejects, digests)

    def _of_run_file(self) -> Iterator[Batch]:
        """Yield the steps and the end of a run from its own file."""
        file, entries, rejects = WandbRun(self.path), _Entries(), list[Reject]()
        for number, entry in enumerate(file.entries(), 1):
            try:
                entries.add(entry)
            except FieldError as error:
                rejects.append(Reject(None, f"{self.name}: entry {number}: {error}."))
        if file.damage:
            rejects.append(Reject(None, f"{self.name}: {file.damage}."))
        ends = []
        if file.exit_code is not None and entries.last is not None:
            failed = f"W&B: the run ended with exit code {file.exit_code}"
            end = Event("failure", entries.last, kind="other", msg=failed)
            ends = [end if file.exit_code else Event("job.end", entries.last)]
        digest = repr((entries.of_steps, ends, rejects))
        yield from self._batches(entries, ends, rejects, [digest], file.run_id, file.noted)

    def _batches(
        self,
        entries: _Entries,
        events: list[Event],
        rejects: list[Reject],
        digests: list[str],
        own: str = "",
        noted: dict[str, Any] | None = None,
    ) -> Iterator[Batch]:
        """Yield the steps and other events of a run; own: its own name, '' where not known.

        noted: what its own file says of its machine.
        """
        host, user, job_id, gpus = _described(noted or _metadata(self.path))
        if gpus and entries.first is not None:
            of = {WORLD_SIZE: gpus}
            events = [Event("metric", entries.first, kind=WORLD_SIZE, extra=of), *events]
        digests = [*digests, f"{gpus}{user}"] if gpus or user else digests
        options = replace(self.options, node=self.options.node or host or None)
        history = History(self.name, self.path, options, self._run(own, job_id), user)
        yield from history.batches(entries.of_steps, events, rejects, digests, entries.start)

    def _run(self, own: str, job_id: str) -> str:
        """Return the run: as given, of Slurm, its own name, of W&B's folder, else of the file."""
        if (job_id or own) and self.options.run_id is None:
            return job_id or own
        named = wandb_run_of(self.path.absolute())
        return self.options.run_id or named or ENDINGS.sub("", self.path.name).removesuffix(".csv")


class _Entries:
    """What counts of the entries of a run: steps, its start, its last moment."""

    def __init__(self) -> None:
        self.with_loss: list[Point] = []
        self.without_loss: list[Point] = []
        self.start: datetime | None = None
        self.first: datetime | None = None
        self.last: datetime | None = None

    def add(self, entry: dict[str, Any]) -> None:
        """Add an entry; FieldError says what is wrong with it."""
        point, began = _point(entry)
        self.start = min(filter(None, (self.start, began)), default=None)
        self.first = min(filter(None, (self.first, began, point.at)))
        self.last = max(filter(None, (self.last, point.at)))
        (self.without_loss if point.loss is None else self.with_loss).append(point)

    @property
    def of_steps(self) -> list[Point]:
        """Return the entries of training: where the loss is logged those with it."""
        return self.with_loss or self.without_loss


def _metadata(path: Path) -> dict[str, Any]:
    """Return what the file beside a history says of its run and its machine."""
    folders = (path.parent, path.parent / "files")
    file = next((found for of in folders if (found := of / METADATA).is_file()), None)
    try:
        return dict(json.loads(files.head(file)) if file is not None else {})
    except (ValueError, RecursionError, TypeError):
        return {}


def _described(said: dict[str, Any]) -> tuple[str, str, str, int]:
    """Return host, user, Slurm's job id and number of GPUs of a run; '' and 0: not noted."""
    try:
        of_job = said.get("slurm") or {}
        host, user, job_id = (
            json_lines.printable(str(of.get(name) or ""), 200)
            for of, name in ((said, "host"), (said, "username"), (of_job, "job_id"))
        )
        gpus = json_lines.whole(said, "gpu_count", 0, GPUS_MAX) or 0
    except (AttributeError, FieldError):
        return "", "", "", 0
    return host, user, job_id if JOB_ID.fullmatch(job_id) else "", gpus


def _entry(header: list[str], line: str) -> dict[str, Any]:
    """Return the cells of a CSV line by name, numbers as such; empty ones are left out."""
    try:
        cells = next(csv.reader([line], strict=True))
    except csv.Error as error:
        raise FieldError(f"the line is not CSV: {error}") from None
    if len(cells) != len(header):
        raise FieldError(f"the line has {len(cells)} cells, the header {len(header)}")
    return {name: _value(cell) for name, cell in zip(header, cells, strict=True) if cell}


def _value(cell: str) -> float | str:
    try:
        return float(cell)
    except ValueError:
        return cell


def _point(entry: dict[str, Any]) -> tuple[Point, datetime | None]:
    """Return an entry, and when the run began by it."""
    at = json_lines.moment(entry, "_timestamp")
    runtime_s = json_lines.number(entry, "_runtime", 0, RUNTIME_MAX_S)
    began = None if runtime_s is None else at - timedelta(seconds=runtime_s)
    name = next((name for name in STEPS if entry.get(name) is not None), "_step")
    step = json_lines.whole(entry, name, 0, STEP_MAX)
    if step is None:
        raise FieldError("_step is missing")
    losses = (_value(str(value)) for name, value in entry.items() if is_loss(name))
    loss = next((value for value in losses if isinstance(value, float)), None)
    return Point(step, at, loss), began
